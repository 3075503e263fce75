// SPDX-License-Identifier: BSD-3-Clause
// Implements the places of ranks in trees, and the walk of one rank through them.
#include "core/algorithms/arrival_trees.hpp"

#include <algorithm>
#include <bit>

#include "core/algorithms/pipeline.hpp"
#include "core/algorithms/segments.hpp"

namespace latecomer::core {
namespace {

int rounds(int n) { return std::bit_width(static_cast<unsigned>(n) - 1); }  // ceil(log2 n)

/// Hosts and their ranks: see Placement.
std::vector<int> place_ranks(const Instance& in, Rank root, bool late_first) {
  std::vector<Rank> order = order_by_host(in);
  if (root < 0) root = in.order.back();
  if (late_first) std::reverse(order.begin(), order.end());
  std::stable_partition(order.begin(), order.end(), [&](Rank r) { return in.same_host(r, root); });
  const auto first = std::find(order.begin(), order.end(), root);
  std::rotate(order.begin(), first, first + 1);
  std::vector<int> out{0};
  for (std::size_t k = 0; k < order.size(); ++k)
    if (k == 0 || !in.same_host(order[k], order[k - 1])) {
      out.push_back(static_cast<int>(k));
      ++out[0];
    }
  out.push_back(in.call.ranks);
  out.insert(out.end(), order.begin(), order.end());
  return out;
}

/// One rank's messages in one tree.
struct Links {
  std::vector<Rank> from, to;  ///< of the reduction: children; of the broadcast: children
  Rank up = -1, down = -1;     ///< the parent of the reduction, and of the broadcast
};

Links links_of(const Placement& placement, int host, int at, int tree, bool binomial, bool both) {
  const auto up = [&](int p, int n) {
    return binomial ? in_binomial_tree(p, n) : both ? in_collecting_tree(p, n, tree) : in_binary_tree(p, n, tree);
  };
  const auto down = [&](int p, int n) {
    return binomial ? in_binomial_tree(p, n) : both ? in_spreading_tree(p, n, tree) : in_binary_tree(p, n, tree);
  };
  const std::span<const int> mine = placement.ranks_of(host);
  const int n = static_cast<int>(mine.size());
  const auto leader = [&](int k) { return placement.ranks_of(k).front(); };
  Links out;
  const auto rank = [&](int p) { return mine[static_cast<std::size_t>(p)]; };
  // The leader of a host speaks for it.
  if (at == 0)
    for (const int k : up(host, placement.hosts()).children) out.from.push_back(leader(k));
  for (const int p : up(at, n).children) out.from.push_back(rank(p));
  // In a binomial tree, the latest child is the first one. Its addition comes last.
  if (binomial) std::reverse(out.from.begin(), out.from.end());
  if (at == 0)
    for (const int k : down(host, placement.hosts()).children) out.to.push_back(leader(k));
  for (const int p : down(at, n).children) out.to.push_back(rank(p));
  if (at > 0) {
    out.up = rank(up(at, n).parent);
    out.down = rank(down(at, n).parent);
  } else if (host > 0) {
    out.up = leader(up(host, placement.hosts()).parent);
    out.down = leader(down(host, placement.hosts()).parent);
  }
  return out;
}

}  // namespace

Placement::Placement(const Instance& instance, Rank root, bool late_first)
    : table_(instance.shared([&] { return place_ranks(instance, root, late_first); })) {}

std::span<const int> Placement::ranks_of(int k) const {
  const auto at = static_cast<std::size_t>(k);
  const auto begin = static_cast<std::size_t>(starts()[at]), end = static_cast<std::size_t>(starts()[at + 1]);
  return table_.subspan(2 + static_cast<std::size_t>(table_[0]) + begin, end - begin);
}

namespace {

/// One of the two binary trees below place 0 of n. Its places have numbers as in a heap, those of inner nodes first.
/// Tree 0 has the places 1, 3, 5, ... first, and tree 1 has 2, 4, 6, ...
struct Heap {
  int others, tree;
  int first() const { return (others + 1 - tree) / 2; }
  int number_of(int place) const { return (place - 1) % 2 == tree ? (place - 1) / 2 : first() + (place - 1) / 2; }
  int place_of(int number) const {
    return number < first() ? 2 * number + 1 + tree : 2 * (number - first()) + 2 - tree;
  }
  Neighbours of(int place) const {
    Neighbours out;
    if (place == 0) {
      if (others > 0) out.children.push_back(place_of(0));
      return out;
    }
    const int number = number_of(place);
    out.parent = number == 0 ? 0 : place_of((number - 1) / 2);
    for (int child = 2 * number + 1; child <= 2 * number + 2 && child < others; ++child)
      out.children.push_back(place_of(child));
    return out;
  }
};

}  // namespace

Neighbours in_binary_tree(int p, int n, int tree) { return Heap{n - 1, tree}.of(p); }

Neighbours in_collecting_tree(int p, int n, int tree) {
  if (p == 0) return {-1, n > 1 ? std::vector<int>{1} : std::vector<int>{}};
  Neighbours out = in_binary_tree(p - 1, n - 1, tree);
  ++out.parent;
  for (int& child : out.children) ++child;
  return out;
}

Neighbours in_spreading_tree(int p, int n, int tree) {
  const int others = n - 2;
  if (others <= 0) return p == 0 ? Neighbours{-1, n > 1 ? std::vector<int>{1} : std::vector<int>{}} : Neighbours{0, {}};
  const Heap heap{others, tree};
  // The place in the heap that has a child to spare.
  const int above = heap.place_of(tree == 1 && others % 2 == 1 ? others - 1 : (others - 1) / 2);
  const auto outside = [](int place) { return place == 0 ? 0 : place + 1; };
  if (p == 1) return {outside(above), {}};
  const int inside = p == 0 ? 0 : p - 1;
  Neighbours out = heap.of(inside);
  if (p > 0) out.parent = outside(out.parent);
  for (int& child : out.children) child = outside(child);
  if (inside == above) out.children.push_back(1);
  return out;
}

Neighbours in_binomial_tree(int p, int n) {
  Neighbours out;
  for (int bit = static_cast<int>(std::bit_floor(static_cast<unsigned>(p))) * 2 + (p == 0); p + bit < n; bit *= 2)
    out.children.push_back(p + bit);
  if (p > 0) out.parent = p - static_cast<int>(std::bit_floor(static_cast<unsigned>(p)));
  return out;
}

double tree_time(const Call& call, const Network& network, int hosts, int most_ranks, int segments) {
  const Bytes m = largest_part(call.count, segments) * call.element_bytes;
  const double outside = static_cast<double>(network.step_ns(m));
  // Without figures for memory, ranks of one host count as if the network were between them.
  const double memory = static_cast<double>(m) * network.memory_beta_ns_per_byte, fabric = network.pace_ns(m);
  const double inside = memory > 0 ? network.memory_latency_ns + memory + 2 * network.overhead_ns : outside;
  if (segments == 1) return rounds(hosts) * outside + rounds(most_ranks) * inside;
  const double pace = hosts > 1 || memory <= 0 ? std::max(fabric, memory) : memory;
  // Each hop waits for the port of a place with two children once more.
  return (segments - 1) * pace + rounds(hosts) * (outside + pace) + rounds(most_ranks) * 2 * inside;
}

int tree_segments(const Call& call, const Network& network, int hosts, int most_ranks) {
  if (network.beta_ns_per_byte <= 0 || call.count == 0) return static_cast<int>(std::min<Elements>(2, call.count));
  return least_segments(static_cast<int>(std::min<Elements>(kChainSegments, call.count)), kModelError,
                        [&](int s) { return tree_time(call, network, hosts, most_ranks, s); });
}

Schedule tree_walk(const Instance& instance, Rank me, TreeRoles roles) {
  const Call& call = instance.call;
  if (call.count == 0) co_return;
  if (call.ranks == 1) {
    if (roles.collects && !call.in_place) co_yield copy(output({0, call.count}), own(call, me, {0, call.count}));
    co_return;
  }
  const int wanted = instance.parameters.segments;
  const int segments = wanted > 0
                           ? static_cast<int>(std::min<Elements>(wanted, call.count))
                           : tree_segments(call, instance.parameters.network, instance.hosts(), instance.most_ranks());
  const Placement placement(instance, is_rooted(call.op) ? call.root : -1, roles.collects && segments == 1);
  int host = 0, at = 0;
  for (bool found = false; !found; host += !found) {
    const std::span<const int> there = placement.ranks_of(host);
    at = static_cast<int>(std::find(there.begin(), there.end(), me) - there.begin());
    found = at < static_cast<int>(there.size());
  }
  const int trees = segments > 1 ? 2 : 1;
  const bool root = host == 0 && at == 0;
  // A reduction's partial results lie in the output where this rank has one, else in scratch.
  const bool has_output = root || roles.spreads, in_output = own_in_output(call, me);
  const Elements largest = largest_part(call.count, segments);
  Elements scratch = 0;
  struct Flow {
    Links links;
    Elements partial = 0;                // scratch, kWindow segments
    std::vector<Elements> landing;       // [child], scratch, kWindow segments each; -1: the partial result
    std::vector<Window> received, used;  // [child]: receives; readers of the received data
    std::vector<Window> spread;          // [child]
    Window sent, got;
  };
  std::array<Flow, 2> flows;
  const auto take = [&] {
    scratch += kWindow * largest;
    return scratch - kWindow * largest;
  };
  for (int t = 0; t < trees; ++t) {
    Flow& f = flows[static_cast<std::size_t>(t)];
    f.links = links_of(placement, host, at, t, trees == 1, roles.collects && roles.spreads);
    const std::size_t children = f.links.from.size();
    if (roles.collects && children > 0 && !has_output) f.partial = take();
    for (std::size_t c = 0; c < children && roles.collects; ++c) f.landing.push_back(c > 0 || in_output ? take() : -1);
    f.received.resize(children);
    f.used.resize(children);
    f.spread.resize(f.links.to.size());
  }
  co_yield ScratchNeed{scratch};
  for (int i = 0; i < segments; ++i) {
    Flow& f = flows[static_cast<std::size_t>(i % trees)];
    const Part seg = part_of(call.count, segments, i);
    const int up = 2 * i % kChannels, down = (2 * i + 1) % kChannels, slot = i / trees % kWindow;
    OpId ready = kNoOp, up_sent = kNoOp;  // the segment is complete here; the partial result has left
    if (roles.collects) {
      const Slice partial = has_output ? output(seg) : Slice{Buffer::scratch, f.partial + slot * largest, seg.count};
      for (std::size_t c = 0; c < f.links.from.size(); ++c) {
        const bool direct = f.landing[c] < 0;
        const Slice landing = direct ? partial : Slice{Buffer::scratch, f.landing[c] + slot * largest, seg.count};
        const OpId landed =
            co_yield recv(f.links.from[c], landing, up)
                .after(f.received[c].oldest(), direct && !has_output ? f.sent.oldest() : f.used[c].oldest())
                .in_round(i);
        f.received[c].push(landed);
        ready = co_yield reduce(partial, direct ? own(call, me, seg) : landing).after(landed, ready);
        f.used[c].push(ready);
      }
      if (!root) {
        const Slice what = f.links.from.empty() ? own(call, me, seg) : partial;
        up_sent = co_yield send(f.links.up, what, up).after(ready, f.sent.oldest()).in_round(i);
        f.sent.push(up_sent);
      }
    }
    if (!roles.spreads) continue;
    if (!root) {
      ready = co_yield recv(f.links.down, output(seg), down).after(f.got.oldest(), up_sent).in_round(i);
      f.got.push(ready);
    }
    for (std::size_t c = 0; c < f.links.to.size(); ++c) {
      Window& spread = f.spread[c];
      spread.push(co_yield send(f.links.to[c], output(seg), down).after(ready, spread.oldest()).in_round(i));
    }
  }
}

}  // namespace latecomer::core

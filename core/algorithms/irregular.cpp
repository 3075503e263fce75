// SPDX-License-Identifier: BSD-3-Clause
// Implements gatherv and scatterv along any tree.
#include "core/algorithms/irregular.hpp"

#include <algorithm>
#include <numeric>

namespace latecomer::core {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// A tree in one table, which all ranks of a simulation share. The table holds, in this order:
/// - [ranks] each: parents, first places, numbers of places, own places;
/// - [ranks + 1]: index of each rank's first child;
/// - [ranks]: all children (the last element is unused);
/// - [ranks]: the rank at each place.
class EntryTable {
 public:
  explicit EntryTable(const std::vector<int>& table)
      : ranks_((static_cast<int>(table.size()) - 1) / 7), table_(table) {}
  TreePart part(Rank r) const {
    TreePart out{field(0, r), field(1, r), field(2, r), field(3, r), {}};
    for (int c = field(4, r); c < field(4, r + 1); ++c) {
      const Rank child = field(5, c + 1);
      out.children.push_back({child, field(1, child), field(2, child)});
    }
    return out;
  }
  std::span<const Rank> order() const { return std::span(table_).subspan(at(6 * ranks_ + 1)); }

  static std::vector<int> make(const RankTree& tree) {
    const int ranks = static_cast<int>(tree.parent.size());
    std::vector<Rank> order = tree.preorder();
    std::vector<int> count(at(ranks), 1), low(at(ranks)), high(at(ranks));
    std::iota(low.begin(), low.end(), 0);
    std::iota(high.begin(), high.end(), 0);
    for (auto r = order.rbegin(); r != order.rend(); ++r)
      if (const Rank p = tree.parent[at(*r)]; p >= 0) {
        count[at(p)] += count[at(*r)];
        low[at(p)] = std::min(low[at(p)], low[at(*r)]);
        high[at(p)] = std::max(high[at(p)], high[at(*r)]);
      }
    bool ordered = true;
    for (Rank r = 0; r < ranks; ++r) ordered = ordered && high[at(r)] - low[at(r)] + 1 == count[at(r)];
    if (ordered) std::iota(order.begin(), order.end(), 0);
    std::vector<int> place(at(ranks)), out(at(7 * ranks + 1));
    for (int i = 0; i < ranks; ++i) place[at(order[at(i)])] = i;
    int children = 0;
    for (Rank r = 0; r < ranks; ++r) {
      out[at(r)] = tree.parent[at(r)];
      out[at(ranks + r)] = ordered ? low[at(r)] : place[at(r)];
      out[at(2 * ranks + r)] = count[at(r)];
      out[at(3 * ranks + r)] = place[at(r)];
      out[at(4 * ranks + r)] = children;
      for (const Rank c : tree.children[at(r)]) out[at(5 * ranks + 1 + children++)] = c;
    }
    out[at(5 * ranks)] = children;
    std::copy(order.begin(), order.end(), out.begin() + 6 * ranks + 1);
    return out;
  }

 private:
  int field(int which, int i) const { return table_[at(which * ranks_ + i)]; }
  int ranks_;
  const std::vector<int>& table_;
};

const std::vector<int>& table_of(const Instance& instance, TreeKind kind) {
  return instance.shared([&] {
    const Call& call = instance.call;
    TreeProblem problem = tree_problem(instance.parameters.network);
    const auto& sizes = instance.parameters.sizes;
    for (Rank r = 0; r < call.ranks; ++r) {
      problem.sizes.push_back(sizes.empty() ? 1 : static_cast<double>(sizes[at(r)]));
      if (!instance.pattern.flat()) problem.arrivals.push_back(static_cast<double>(instance.pattern.arrival(r)));
    }
    TreeOptions options;
    options.root = call.root;
    auto tree = plan_tree(kind, problem, options);
    // These problems are always valid. Without a tree, this rank would not match the other ranks.
    if (!tree) std::terminate();
    return EntryTable::make(*tree);
  });
}

/// The star of hosts around the root. The root's children are the ranks of its host and one leader of each other host,
/// which has the other ranks of its host as children. Leaders are the ranks that arrive first. A gather receives in the
/// order in which children, and all ranks of their host, have arrived. A scatter sends in this order, too.
RankTree tree_of_hosts(const Instance& in) {
  const int ranks = in.call.ranks;
  RankTree out;
  out.root = in.call.root;
  out.parent.assign(at(ranks), in.call.root);
  out.children.resize(at(ranks));
  out.parent[at(out.root)] = -1;
  const int home = in.host(out.root);
  std::vector<Rank> leader(at(in.hosts()), -1);
  std::vector<int> left(at(in.hosts()), 0);  // ranks that have not arrived
  for (Rank r = 0; r < ranks; ++r) ++left[at(in.host(r))];
  std::vector<Rank>& below_root = out.children[at(out.root)];
  for (const Rank r : in.order) {
    const int host = in.host(r);
    if (host == home) {
      if (r != out.root) below_root.push_back(r);
      continue;
    }
    Rank& first = leader[at(host)];
    if (first < 0) first = r;
    else out.attach(r, first);
    if (--left[at(host)] == 0) below_root.push_back(first);
  }
  if (is_scatter(in.call.op))  // which takes the children in reverse order
    for (auto& children : out.children) std::reverse(children.begin(), children.end());
  return out;
}

Slice places(Buffer buffer, const Call& call, int first, int count) {
  return {buffer, first * call.count, count * call.count};
}

/// The number of places from `first` on, at most `most`, that hold the blocks of consecutive ranks.
int run_at(std::span<const Rank> order, int first, int most) {
  if (order.empty()) return most;
  int n = 1;
  while (n < most && order[at(first + n)] == order[at(first)] + n) ++n;
  return n;
}
Rank rank_at(std::span<const Rank> order, int place) { return order.empty() ? place : order[at(place)]; }

}  // namespace

TreeProblem tree_problem(const Network& network) {
  TreeProblem out;
  out.alpha = {network.alpha_ns + network.overhead_ns};
  out.latency = network.latency_ns;
  out.beta = {network.beta_ns_per_byte};
  out.gamma = {network.copy_ns_per_byte};
  return out;
}

Schedule gather_part(const Call& call, Rank me, TreePart part, std::span<const Rank> order) {
  if (call.count == 0) co_return;
  const bool root = part.parent < 0;
  if (!root && part.children.empty()) {
    co_yield send(part.parent, places(Buffer::input, call, 0, 1), 0);
    co_return;
  }
  co_yield ScratchNeed{(root ? call.ranks : part.first + part.count) * call.count};
  OpId all = kNoOp;
  if (!root) all = co_yield copy(places(Buffer::scratch, call, part.own, 1), places(Buffer::input, call, 0, 1));
  for (const TreeBranch& b : part.children) {
    const OpId landed = co_yield recv(b.peer, places(Buffer::scratch, call, b.first, b.count), 0);
    if (!root)
      all = co_yield copy({Buffer::scratch, 0, 0}, {Buffer::scratch, 0, 0})
                .after(all, landed);  // an empty copy joins dependencies
    for (int p = b.first, n; root && p < b.first + b.count; p += n) {
      n = run_at(order, p, b.first + b.count - p);
      co_yield copy(places(Buffer::output, call, rank_at(order, p), n), places(Buffer::scratch, call, p, n))
          .after(landed);
    }
  }
  if (!root) co_yield send(part.parent, places(Buffer::scratch, call, part.first, part.count), 0).after(all);
  else if (!call.in_place) co_yield copy(places(Buffer::output, call, me, 1), places(Buffer::input, call, 0, 1));
}

Schedule scatter_part(const Call& call, Rank me, TreePart part, std::span<const Rank> order) {
  if (call.count == 0) co_return;
  const bool root = part.parent < 0;
  if (!root && part.children.empty()) {
    co_yield recv(part.parent, places(Buffer::output, call, 0, 1), 0);
    co_return;
  }
  co_yield ScratchNeed{(root ? call.ranks : part.first + part.count) * call.count};
  OpId landed = kNoOp;
  if (!root) landed = co_yield recv(part.parent, places(Buffer::scratch, call, part.first, part.count), 0);
  // In reverse order of the gather, because the last child of a gather has the most data to forward.
  for (auto b = part.children.rbegin(); b != part.children.rend(); ++b) {
    OpId ready = landed;
    for (int p = b->first, n; root && p < b->first + b->count; p += n) {
      n = run_at(order, p, b->first + b->count - p);
      ready = co_yield copy(places(Buffer::scratch, call, p, n), places(Buffer::input, call, rank_at(order, p), n))
                  .after(p == b->first ? kNoOp : ready);
    }
    co_yield send(b->peer, places(Buffer::scratch, call, b->first, b->count), 0).after(ready);
  }
  if (!root)
    co_yield copy(places(Buffer::output, call, 0, 1), places(Buffer::scratch, call, part.own, 1)).after(landed);
  else if (!call.in_place) co_yield copy(places(Buffer::output, call, 0, 1), places(Buffer::input, call, me, 1));
}

namespace {
Schedule along_part(const Call& call, Rank me, TreePart part, std::span<const Rank> order) {
  return is_gather(call.op) ? gather_part(call, me, std::move(part), order)
                            : scatter_part(call, me, std::move(part), order);
}
}  // namespace

Schedule along_tree(const Instance& instance, Rank me, TreeKind kind) {
  const EntryTable table(table_of(instance, kind));
  return along_part(instance.call, me, table.part(me), table.order());
}

Schedule along_hosts(const Instance& instance, Rank me) {
  const Call& call = instance.call;
  const EntryTable table(instance.shared([&] { return EntryTable::make(tree_of_hosts(instance)); }));
  TreePart part = table.part(me);
  // Blocks of one size need no common places, so each rank's scratch begins with its own subtree.
  if (const int first = part.first; !is_irregular(call.op) && part.parent >= 0) {
    part.first = 0;
    part.own -= first;
    for (TreeBranch& b : part.children) b.first -= first;
  }
  return along_part(call, me, std::move(part), table.order());
}

Bytes irregular_bytes(const Instance& instance, Rank me, const Slice& slice) {
  const Call& call = instance.call;
  const auto& sizes = instance.parameters.sizes;
  if (sizes.empty()) return slice.count * call.element_bytes;
  const bool scratch = slice.buffer == Buffer::scratch;
  const bool all = me == call.root && (slice.buffer == Buffer::input) == is_scatter(call.op);
  const auto order = scratch ? EntryTable(instance.shared()).order() : std::span<const Rank>(instance.rank_order);
  Bytes out = 0;
  for (Elements e = slice.offset; e < slice.end(); ++e)
    out += sizes[at(scratch || all ? order[static_cast<std::size_t>(e / call.count)] : me)];
  return out / call.count;
}

}  // namespace latecomer::core

// SPDX-License-Identifier: BSD-3-Clause
// Implements the binomial tree and the walks of scatter, gather and bcast.
#include "core/algorithms/blocks.hpp"

#include <bit>
#include <numeric>

namespace latecomer::core {
namespace {

Slice block(Buffer buffer, const Call& call, int first, int blocks = 1) {
  return {buffer, first * call.count, blocks * call.count};
}

std::vector<int> place_ranks(const Instance& instance, Placing placing) {
  const int ranks = instance.call.ranks;
  const Rank root = instance.call.root;
  std::vector<int> table(static_cast<std::size_t>(2 * ranks));
  const auto put = [&](int v, Rank r) {
    table[static_cast<std::size_t>(v)] = r;
    table[static_cast<std::size_t>(ranks + r)] = v;
  };
  if (placing == Placing::rotated || instance.pattern.flat()) {
    for (int v = 0; v < ranks; ++v) put(v, (root + v) % ranks);
    return table;
  }
  std::vector<int> places(static_cast<std::size_t>(ranks) - 1);
  std::iota(places.begin(), places.end(), 1);
  const auto phase = [](int v) { return v & -v; };
  std::stable_sort(places.begin(), places.end(), [&](int x, int y) {
    return placing == Placing::early_near ? phase(x) > phase(y) : phase(x) < phase(y);
  });
  put(0, root);
  auto next = places.begin();
  for (const Rank r : instance.order)
    if (r != root) put(*next++, r);
  return table;
}

/// The first segment of a block in a synchronized gather. The sizes are those of Open MPI's tuned component (gather).
Elements first_part(const Call& call) {
  constexpr Bytes kLargeBlock = 92160, kSmallSegment = 1024, kLargeSegment = 32768;
  const Bytes first = call.count * call.element_bytes > kLargeBlock ? kLargeSegment : kSmallSegment;
  return std::min(call.count, std::max<Elements>(1, first / call.element_bytes));
}

}  // namespace

Tree::Tree(const Instance& instance, Placing placing)
    : ranks_(instance.call.ranks), table_(instance.shared([&] { return place_ranks(instance, placing); })) {}

int Tree::reach(int v) const {
  return v == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(ranks_))) : v & -v;
}

int Tree::run(int v, int most) const {
  int n = 1;
  while (n < most && rank_at(v + n) == rank_at(v) + n) ++n;
  return n;
}

Schedule list_from_root(const Instance& instance, Rank me, std::span<const Rank> order, Lane lane) {
  const Call& call = instance.call;
  if (call.count == 0) co_return;
  if (me != call.root) {
    if (lane == Lane::background) {
      co_yield ScratchNeed{call.count};
      const OpId landed = co_yield recv(call.root, block(Buffer::scratch, call, 0), 0).in_lane(lane);
      co_yield copy(output({0, call.count}), block(Buffer::scratch, call, 0)).after(landed);
    } else {
      co_yield recv(call.root, output({0, call.count}), 0);
    }
    co_return;
  }
  const bool blocks = has_blocks(call.op);
  PeerWindow sends;
  OpId sent = kNoOp;
  for (const Rank r : order) {
    if (r == me) continue;
    sent = co_yield send(r, blocks ? block(Buffer::input, call, r) : output({0, call.count}), 0)
               .after(instance.parameters.overlap ? sends.oldest() : sent);
    sends.push(sent);
  }
  if (blocks && !call.in_place) co_yield copy(output({0, call.count}), block(Buffer::input, call, me));
}

Schedule scatter_tree(const Instance& instance, Rank me, Placing placing, Lane lane) {
  const Call& call = instance.call;
  if (call.count == 0) co_return;
  const bool lockstep = !instance.parameters.overlap, root = me == call.root;
  const Tree tree(instance, placing);
  const int v = tree.id_of(me);
  OpId landed = kNoOp, sent = kNoOp, copied = kNoOp;
  const bool direct = !root && tree.size(v) == 1 && lane == Lane::foreground;
  if (!root) {
    if (!direct) co_yield ScratchNeed{tree.size(v) * call.count};
    landed = co_yield recv(tree.parent_of(v),
                           direct ? output({0, call.count}) : block(Buffer::scratch, call, 0, tree.size(v)), 0)
                 .in_lane(lane);
  }
  for (int mask = tree.reach(v) / 2, round = 0; mask > 0; mask /= 2, ++round) {
    const int child = v + mask;
    if (child >= tree.ranks()) continue;
    const int blocks = tree.size(child);
    Slice what = block(Buffer::scratch, call, root ? child : mask, blocks);
    OpId ready = landed;
    if (root && tree.run(child, blocks) == blocks) {
      what = block(Buffer::input, call, tree.rank_at(child), blocks);
    } else if (root) {
      co_yield ScratchNeed{call.ranks * call.count};
      for (int at = child, run; at < child + blocks; at += run) {
        run = tree.run(at, child + blocks - at);
        ready = copied =
            co_yield copy(block(Buffer::scratch, call, at, run), block(Buffer::input, call, tree.rank_at(at), run))
                .after(copied);
      }
    }
    sent = co_yield send(tree.rank_at(child), what, 0)
               .after(ready, lockstep ? sent : kNoOp)
               .in_round(round)
               .in_lane(root ? Lane::foreground : lane);
  }
  if (root) {
    if (!call.in_place) co_yield copy(output({0, call.count}), block(Buffer::input, call, me));
  } else if (!direct) {
    co_yield copy(output({0, call.count}), block(Buffer::scratch, call, 0)).after(landed);
  }
}

Schedule gather_list(const Instance& instance, Rank me, std::span<const Rank> order) {
  const Call& call = instance.call;
  if (call.count == 0) co_return;
  if (me != call.root) {
    co_yield send(call.root, block(Buffer::input, call, 0), 0);
    co_return;
  }
  PeerWindow recvs;
  OpId got = kNoOp;
  for (const Rank r : order) {
    if (r == me) continue;
    got = co_yield recv(r, block(Buffer::output, call, r), 0).after(instance.parameters.overlap ? recvs.oldest() : got);
    recvs.push(got);
  }
  if (!call.in_place) co_yield copy(block(Buffer::output, call, me), block(Buffer::input, call, 0));
}

Schedule gather_synchronised(const Instance& instance, Rank me, std::span<const Rank> order, Lane lane) {
  const Call& call = instance.call;
  if (call.count == 0) co_return;
  enum { kToken, kFirst, kRest };  // channels
  const Elements first = first_part(call), rest = call.count - first;
  const Slice token{Buffer::scratch, 0, 0};
  if (me != call.root) {
    const OpId granted = co_yield recv(call.root, token, kToken);
    const OpId sent = co_yield send(call.root, {Buffer::input, 0, first}, kFirst).after(granted);
    if (rest > 0) co_yield send(call.root, {Buffer::input, first, rest}, kRest).after(sent);
    co_return;
  }
  const bool apart = lane == Lane::background;
  const Buffer into = apart ? Buffer::scratch : Buffer::output;
  if (apart) co_yield ScratchNeed{call.ranks * call.count};
  OpId before = kNoOp;
  std::vector<std::pair<OpId, OpId>> landed;  // per sender: the receives of its first segment and of the rest
  for (const Rank r : order) {
    if (r == me) continue;
    const Elements at = r * call.count;
    const OpId first_in = co_yield recv(r, {into, at, first}, kFirst).after(before).in_lane(lane);
    co_yield send(r, token, kToken).after(before).in_lane(lane);
    OpId rest_in = first_in;
    if (rest > 0) rest_in = co_yield recv(r, {into, at + first, rest}, kRest).after(before).in_lane(lane);
    if (apart) landed.emplace_back(first_in, rest_in);
    before = first_in;
  }
  // Foreground copies follow all background operations, so that no background operation is generated behind them.
  auto next = landed.begin();
  for (const Rank r : order)
    if (r != me && apart) {
      co_yield copy(block(Buffer::output, call, r), block(Buffer::scratch, call, r)).after(next->first, next->second);
      ++next;
    }
  if (!call.in_place) co_yield copy(block(Buffer::output, call, me), block(Buffer::input, call, 0));
}

Schedule gather_tree(const Instance& instance, Rank me, Placing placing, Lane lane) {
  const Call& call = instance.call;
  if (call.count == 0) co_return;
  const bool lockstep = !instance.parameters.overlap, root = me == call.root;
  const Tree tree(instance, placing);
  const int v = tree.id_of(me), size = tree.size(v);
  if (size == 1 && !root) {
    co_yield send(tree.parent_of(v), block(Buffer::input, call, 0), 0);
    co_return;
  }
  OpId all = kNoOp;  // completes when all blocks to send are in the scratch
  if (!root) {
    co_yield ScratchNeed{size * call.count};
    all = co_yield copy(block(Buffer::scratch, call, 0), block(Buffer::input, call, 0));
  }
  const auto direct = [&](int child) {
    return root && lane == Lane::foreground && tree.run(child, tree.size(child)) == tree.size(child);
  };
  std::vector<OpId> landed;  // [child]
  for (int mask = 1, round = 0; mask < tree.reach(v) && v + mask < tree.ranks(); mask *= 2, ++round) {
    const int child = v + mask;
    if (root && !direct(child)) co_yield ScratchNeed{call.ranks * call.count};
    const Slice into = direct(child) ? block(Buffer::output, call, tree.rank_at(child), tree.size(child))
                                     : block(Buffer::scratch, call, mask, tree.size(child));
    landed.push_back(co_yield recv(tree.rank_at(child), into, 0)
                         .after(lockstep && !landed.empty() ? landed.back() : kNoOp)
                         .in_round(round)
                         .in_lane(lane));
  }
  OpId copied = kNoOp;
  for (std::size_t i = 0; i < landed.size(); ++i) {
    const int child = v + (1 << i), end = child + tree.size(child);
    if (!root)
      all = co_yield copy({Buffer::scratch, 0, 0}, {Buffer::scratch, 0, 0})
                .after(all, landed[i]);  // an empty copy joins dependencies
    for (int at = child, run; root && !direct(child) && at < end; at += run) {
      run = tree.run(at, end - at);
      copied = co_yield copy(block(Buffer::output, call, tree.rank_at(at), run), block(Buffer::scratch, call, at, run))
                   .after(landed[i], copied);
    }
  }
  if (!root) co_yield send(tree.parent_of(v), block(Buffer::scratch, call, 0, size), 0).after(all);
  else if (!call.in_place) co_yield copy(block(Buffer::output, call, me), block(Buffer::input, call, 0));
}

Schedule bcast_tree(const Instance& instance, Rank me, Placing placing, Lane lane) {
  const Call& call = instance.call;
  if (call.count == 0) co_return;
  const Part all{0, call.count};
  const bool lockstep = !instance.parameters.overlap, root = me == call.root, apart = lane == Lane::background && !root;
  const Tree tree(instance, placing);
  const int v = tree.id_of(me);
  const Slice where = apart ? Slice{Buffer::scratch, 0, call.count} : output(all);
  if (apart) co_yield ScratchNeed{call.count};
  OpId landed = kNoOp, sent = kNoOp;
  if (!root) landed = co_yield recv(tree.parent_of(v), where, 0).in_lane(lane);
  for (int mask = tree.reach(v) / 2, round = 0; mask > 0; mask /= 2, ++round) {
    if (v + mask >= tree.ranks()) continue;
    sent = co_yield send(tree.rank_at(v + mask), where, 0)
               .after(landed, lockstep ? sent : kNoOp)
               .in_round(round)
               .in_lane(root ? Lane::foreground : lane);
  }
  if (apart) co_yield copy(output(all), where).after(landed);
}

}  // namespace latecomer::core

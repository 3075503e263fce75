// SPDX-License-Identifier: BSD-3-Clause
// reduce/rabenseifner. Steps: ranks beyond the largest power of two are folded into their neighbours; reduce-scatter by
// recursive halving (partners at distance 1, 2, 4, ..., which keeps operands in rank order); the blocks go back through the
// same partners towards the root.
// Cost: 2 log2 P alpha + 2 (P-1)/P N beta + (P-1)/P N gamma for P a power of two; folding adds up to two messages
// of N. Operands: rank order. Buffers: N of scratch, 2 N on other ranks than the root.
// Source: Rabenseifner, ICCS 2004; Thakur, Rabenseifner, Gropp, IJHPCA 2005, section 4.4; the RAB of paper 000, section 6.
#include <bit>

#include "core/algorithms/algorithm.hpp"

namespace latecomer::core::algorithms::reduce {

Schedule rabenseifner(const Instance& instance, Rank me) {
  const Call& call = instance.call;
  const Part all{0, call.count};
  if (call.count == 0) co_return;
  const int pow2 = static_cast<int>(std::bit_floor(static_cast<unsigned>(call.ranks)));
  const int folded = call.ranks - pow2;
  const bool lockstep = !instance.parameters.overlap, root = me == call.root;
  enum { kFold = 0, kUnfold = 1, kHalve = 2, kBack = 64 };
  const auto id_of = [&](Rank r) { return r < 2 * folded ? r / 2 : r - folded; };
  const bool folds = me < 2 * folded && me % 2 == 0;  // gives its vector away and is done, unless it is the root

  if (folds) {
    const OpId sent = co_yield send(me + 1, own(call, me, all), kFold);
    if (root) co_yield recv(me + 1, output(all), kUnfold).after(sent);
    co_return;
  }
  // The value: the root's output, elsewhere the second half of the scratch.
  const Elements landing_at = 0, value_at = call.count;
  const auto value = [&](Part p) { return root ? output(p) : Slice{Buffer::scratch, value_at + p.offset, p.count}; };
  const auto landing = [&](Part p) { return Slice{Buffer::scratch, landing_at + p.offset, p.count}; };
  co_yield ScratchNeed{call.ranks == 1 ? 0 : root ? call.count : 2 * call.count};
  OpId ready = kNoOp;
  if (!(root && call.in_place)) ready = co_yield copy(value(all), own(call, me, all));
  if (call.ranks == 1) co_return;
  if (me < 2 * folded) {
    const OpId landed = co_yield recv(me - 1, landing(all), kFold);
    ready = co_yield core::reduce(value(all), landing(all)).after(landed, ready);
  }

  struct Level {
    Rank partner;
    Part kept, given;
    OpId sent;
  };
  std::vector<Level> levels;
  const auto blocks = [&](int from, int to) {
    const Elements lo = part_of(call.count, pow2, from).offset;
    const Elements hi = to == pow2 ? call.count : part_of(call.count, pow2, to).offset;
    return Part{lo, hi - lo};
  };
  const int id = id_of(me), root_id = id_of(call.root);
  int lo = 0, hi = pow2;
  for (int mask = 1, step = 0; mask < pow2; mask <<= 1, ++step) {
    const int other = id ^ mask, mid = (lo + hi) / 2;
    const bool lower = (id & mask) == 0;
    Level level{other < folded ? 2 * other + 1 : other + folded, lower ? blocks(lo, mid) : blocks(mid, hi), lower ? blocks(mid, hi) : blocks(lo, mid), kNoOp};
    (lower ? hi : lo) = mid;
    const OpId before = lockstep && !levels.empty() ? levels.back().sent : kNoOp;
    if (level.given.count > 0) level.sent = co_yield send(level.partner, value(level.given), kHalve + step).after(ready, before).in_round(step);
    if (level.kept.count > 0) {
      const Slice mine = value(level.kept), theirs = landing(level.kept);
      const OpId landed = co_yield recv(level.partner, theirs, kHalve + step).after(ready, before).in_round(step);
      if (level.partner < me || call.commutative) {
        ready = co_yield core::reduce(mine, theirs).after(landed, ready);
      } else {
        const OpId combined = co_yield core::reduce(theirs, mine).after(landed, ready);
        ready = co_yield copy(mine, theirs).after(combined);
      }
    }
    levels.push_back(level);
  }
  // Back: of two partners the one on the root's side takes the other's blocks.
  const int steps = static_cast<int>(levels.size());
  OpId got_last = ready;
  for (int step = steps - 1; step >= 0; --step) {
    const Level& level = levels[static_cast<std::size_t>(step)];
    const int round = 2 * steps - 1 - step;
    if ((id ^ root_id) & (1 << step)) {
      if (level.kept.count > 0) co_yield send(level.partner, value(level.kept), kBack + step).after(ready, got_last).in_round(round);
      co_return;
    }
    if (level.given.count > 0)
      // What comes lies where this rank's own halves were: their sends must be complete.
      got_last = co_yield recv(level.partner, value(level.given), kBack + step).after(level.sent, got_last, lockstep ? ready : kNoOp).in_round(round);
  }
  if (!root) co_yield send(me - 1, value(all), kUnfold).after(ready, got_last);
}

}  // namespace latecomer::core::algorithms::reduce

// SPDX-License-Identifier: BSD-3-Clause
// reduce/rabenseifner. Recursive halving, then a binomial gather.
// Steps: Folding reduces the number of ranks to a power of two: rank 2i sends its vector to rank 2i+1. Recursive
// halving over partners at distance 1, 2, 4, ... leaves each rank one reduced block. The blocks return through the same
// partners towards the root.
// Cost: 2 log2 P alpha + 2 (P-1)/P N beta + (P-1)/P N gamma for N bytes and P ranks, P a power of two. Folding adds up
// to two messages of N.
// Operands: rank order, because the nearest partners combine first.
// Buffers: N of scratch at the root, 2 N on other ranks.
// Source: Rabenseifner 2004 (ICCS); Thakur, Rabenseifner, Gropp 2005 (IJHPCA 19), section 4.4; RAB in Proficz,
// Ocetkiewicz 2021 (J. Supercomputing 77), section 6.
#include "core/algorithms/halving.hpp"

namespace latecomer::core::algorithms::reduce {

Schedule rabenseifner(const Instance& instance, Rank me) {
  const Call& call = instance.call;
  const Part all{0, call.count};
  if (call.count == 0) co_return;
  const Folding folding(call.ranks);
  const bool lockstep = !instance.parameters.overlap, root = me == call.root;
  // Channels. kHalve and kBack are the first of one per step; log2 P is at most 30.
  enum { kFold = 0, kUnfold = 1, kHalve = 2, kBack = 64 };

  if (folding.gives(me)) {  // only the root then receives the result
    const OpId sent = co_yield send(me + 1, own(call, me, all), kFold);
    if (root) co_yield recv(me + 1, output(all), kUnfold).after(sent);
    co_return;
  }
  // The partial result is in the output at the root, and in the second half of the scratch elsewhere.
  const auto value = [&](Part p) { return root ? output(p) : Slice{Buffer::scratch, call.count + p.offset, p.count}; };
  const auto landing = [&](Part p) { return Slice{Buffer::scratch, p.offset, p.count}; };
  co_yield ScratchNeed{call.ranks == 1 ? 0 : root ? call.count : 2 * call.count};
  OpId ready = kNoOp;
  if (!own_in_output(call, me)) ready = co_yield copy(value(all), own(call, me, all));
  if (call.ranks == 1) co_return;
  if (folding.takes(me)) {
    const OpId landed = co_yield recv(me - 1, landing(all), kFold);
    ready = co_yield core::reduce(value(all), landing(all)).after(landed, ready);
  }

  auto levels = halving_levels(folding, call.count, me);
  const int steps = static_cast<int>(levels.size());
  OpId before = kNoOp;
  for (int step = 0; step < steps; ++step) {
    HalvingLevel& level = levels[static_cast<std::size_t>(step)];
    if (level.given.count > 0)
      level.sent = co_yield send(level.partner, value(level.given), kHalve + step).after(ready, before).in_round(step);
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
    if (lockstep) before = level.sent;
  }
  // Way back: of two partners, the one on the root's side receives the blocks of the other.
  const int apart = folding.id_of(me) ^ folding.id_of(call.root);
  OpId got_last = ready;
  for (int step = steps - 1; step >= 0; --step) {
    const HalvingLevel& level = levels[static_cast<std::size_t>(step)];
    const int round = 2 * steps - 1 - step;
    if (apart & (1 << step)) {
      if (level.kept.count > 0)
        co_yield send(level.partner, value(level.kept), kBack + step).after(ready, got_last).in_round(round);
      co_return;
    }
    if (level.given.count > 0)
      // The receive overwrites the half that this rank sent, so that send must be complete.
      got_last = co_yield recv(level.partner, value(level.given), kBack + step)
                     .after(level.sent, got_last, lockstep ? ready : kNoOp)
                     .in_round(round);
  }
  if (!root) co_yield send(me - 1, value(all), kUnfold).after(ready, got_last);
}

}  // namespace latecomer::core::algorithms::reduce

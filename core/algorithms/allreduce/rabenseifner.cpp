// SPDX-License-Identifier: BSD-3-Clause
// allreduce/rabenseifner. Recursive halving, then recursive doubling.
// Steps: Folding reduces the number of ranks to a power of two: rank 2i sends its vector to rank 2i+1. Recursive
// halving over partners at distance 1, 2, 4, ... leaves each rank one reduced block. Recursive doubling returns through
// the same partners and gathers the blocks. At the end, rank 2i receives the result from rank 2i+1.
// Cost: 2 log2 P alpha + 2 (P-1)/P N beta + (P-1)/P N gamma for N bytes and P ranks, P a power of two. Folding adds two
// messages of N.
// Operands: rank order, because the nearest partners combine first.
// Buffers: N of scratch.
// Source: Rabenseifner 2004 (ICCS); Thakur, Rabenseifner, Gropp 2005 (IJHPCA 19), section 4.5.
#include "core/algorithms/halving.hpp"

namespace latecomer::core::algorithms::allreduce {

Schedule rabenseifner(const Instance& instance, Rank me) {
  const Call& call = instance.call;
  const Part all{0, call.count};
  if (call.count == 0) co_return;
  const Folding folding(call.ranks);
  const bool lockstep = !instance.parameters.overlap;
  // Channels. kHalve and kDouble are the first of one per step; log2 P is at most 30.
  enum { kFold = 0, kUnfold = 1, kHalve = 2, kDouble = 64 };

  if (folding.gives(me)) {
    const OpId sent = co_yield send(me + 1, own(call, all), kFold);
    co_yield recv(me + 1, output(all), kUnfold).after(sent);
    co_return;
  }
  OpId ready = kNoOp;
  if (!call.in_place) ready = co_yield copy(output(all), own(call, all));
  if (call.ranks == 1) co_return;
  co_yield ScratchNeed{call.count};
  if (folding.takes(me)) {
    const OpId landed = co_yield recv(me - 1, {Buffer::scratch, 0, call.count}, kFold);
    ready = co_yield reduce(output(all), {Buffer::scratch, 0, call.count}).after(landed, ready);
  }

  auto levels = halving_levels(folding, call.count, me);
  const int steps = static_cast<int>(levels.size());
  OpId before = kNoOp;
  for (int step = 0; step < steps; ++step) {
    HalvingLevel& level = levels[static_cast<std::size_t>(step)];
    if (level.given.count > 0)
      level.sent = co_yield send(level.partner, output(level.given), kHalve + step).after(ready, before).in_round(step);
    if (level.kept.count > 0) {
      const Slice mine = output(level.kept), theirs{Buffer::scratch, level.kept.offset, level.kept.count};
      const OpId landed = co_yield recv(level.partner, theirs, kHalve + step).after(ready, before).in_round(step);
      if (level.partner < me || call.commutative) {
        ready = co_yield reduce(mine, theirs).after(landed, ready);
      } else {
        const OpId combined = co_yield reduce(theirs, mine).after(landed, ready);
        ready = co_yield copy(mine, theirs).after(combined);
      }
    }
    if (lockstep) before = level.sent;
  }
  OpId sent = kNoOp;
  for (int step = steps - 1; step >= 0; --step) {
    const HalvingLevel& level = levels[static_cast<std::size_t>(step)];
    const int round = 2 * steps - 1 - step;
    const OpId before_sent = lockstep ? sent : kNoOp, before_ready = lockstep ? ready : kNoOp;
    OpId now = sent, got = kNoOp;
    if (level.kept.count > 0)
      now = co_yield send(level.partner, output(level.kept), kDouble + step).after(ready, sent).in_round(round);
    if (level.given.count > 0)
      got = co_yield recv(level.partner, output(level.given), kDouble + step)
                .after(level.sent, before_sent, before_ready)
                .in_round(round);
    sent = now;
    // The next send covers both halves of this level. This level's send waited for all older receives.
    if (got != kNoOp) ready = got;
  }
  if (folding.takes(me)) co_yield send(me - 1, output(all), kUnfold).after(ready, sent);
}

}  // namespace latecomer::core::algorithms::allreduce

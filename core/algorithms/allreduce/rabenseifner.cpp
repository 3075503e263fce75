// SPDX-License-Identifier: BSD-3-Clause
// allreduce/rabenseifner. Steps: ranks beyond the largest power of two are folded into their neighbours;
// reduce-scatter by recursive halving (partners at distance 1, 2, 4, ..., which keeps operands in rank
// order); allgather by recursive doubling back through the same partners; the folded ranks get the result.
// Cost: 2 log2 P alpha + 2 (P-1)/P N beta + (P-1)/P N gamma for P a power of two; folding adds two
// messages of N. Buffers: N of scratch.
// Source: Rabenseifner, ICCS 2004; Thakur, Rabenseifner, Gropp, IJHPCA 2005, section 4.5.
#include <bit>

#include "core/algorithms/algorithm.hpp"

namespace latecomer::core::algorithms::allreduce {

Schedule rabenseifner(const Instance& instance, Rank me) {
  const Call& call = instance.call;
  const Part all{0, call.count};
  if (call.count == 0) co_return;
  const int pow2 = static_cast<int>(std::bit_floor(static_cast<unsigned>(call.ranks)));
  const int folded = call.ranks - pow2;
  const bool lockstep = !instance.parameters.overlap;
  enum { kFold = 0, kUnfold = 1, kHalve = 2, kDouble = 64 };

  if (me < 2 * folded && me % 2 == 0) {
    const OpId sent = co_yield send(me + 1, own(call, all), kFold);
    co_yield recv(me + 1, output(all), kUnfold).after(sent);
    co_return;
  }
  OpId ready = kNoOp;
  if (!call.in_place) ready = co_yield copy(output(all), own(call, all));
  if (call.ranks == 1) co_return;
  co_yield ScratchNeed{call.count};
  int id = me - folded;
  if (me < 2 * folded) {
    id = me / 2;
    const OpId landed = co_yield recv(me - 1, {Buffer::scratch, 0, call.count}, kFold);
    ready = co_yield reduce(output(all), {Buffer::scratch, 0, call.count}).after(landed, ready);
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
  int lo = 0, hi = pow2;
  for (int mask = 1, step = 0; mask < pow2; mask <<= 1, ++step) {
    const int other = id ^ mask, mid = (lo + hi) / 2;
    const bool lower = (id & mask) == 0;
    Level level{other < folded ? 2 * other + 1 : other + folded, lower ? blocks(lo, mid) : blocks(mid, hi),
                lower ? blocks(mid, hi) : blocks(lo, mid), kNoOp};
    (lower ? hi : lo) = mid;
    const OpId before = lockstep && !levels.empty() ? levels.back().sent : kNoOp;
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
    levels.push_back(level);
  }
  OpId sent = kNoOp;
  for (int step = static_cast<int>(levels.size()) - 1; step >= 0; --step) {
    const Level& level = levels[static_cast<std::size_t>(step)];
    const int round = 2 * static_cast<int>(levels.size()) - 1 - step;
    OpId now = sent, got = kNoOp;
    if (level.kept.count > 0)
      now = co_yield send(level.partner, output(level.kept), kDouble + step).after(ready, sent).in_round(round);
    if (level.given.count > 0)
      got = co_yield recv(level.partner, output(level.given), kDouble + step)
                .after(level.sent, lockstep ? sent : kNoOp, lockstep ? ready : kNoOp).in_round(round);
    sent = now;
    // The next send covers this level's halves: what was sent now waited for the older ones.
    if (got != kNoOp) ready = got;
  }
  if (me < 2 * folded) co_yield send(me - 1, output(all), kUnfold).after(ready, sent);
}

}  // namespace latecomer::core::algorithms::allreduce

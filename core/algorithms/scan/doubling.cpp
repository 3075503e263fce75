// SPDX-License-Identifier: BSD-3-Clause
// scan/doubling. Steps: in step k rank r sends what it has, the result over its last 2^k ranks, to r + 2^k, and puts
// what r - 2^k sends before its own. No rank sends what the other already has: one reduction a step, half of the
// messages of an exchange. Cost: ceil(log2 P) (alpha + N beta + N gamma). Buffers: 2 N of scratch. Operands: rank
// order. Source: Hillis, Steele, CACM 29 (1986).
#include "core/algorithms/algorithm.hpp"

namespace latecomer::core::algorithms::scan {

Schedule doubling(const Instance& instance, Rank me) {
  const Call& call = instance.call;
  const Part all{0, call.count};
  if (call.count == 0) co_return;
  const bool lockstep = !instance.parameters.overlap;
  OpId ready = kNoOp;  // produced the result so far
  if (!call.in_place) ready = co_yield copy(output(all), own(call, all));
  OpId sent = kNoOp, slot_free[2] = {kNoOp, kNoOp};
  int step = 0;
  for (int distance = 1; distance < call.ranks; distance *= 2, ++step) {
    OpId now = kNoOp;
    if (me + distance < call.ranks)
      now = co_yield send(me + distance, output(all), step).after(ready, lockstep ? sent : kNoOp).in_round(step);
    if (me >= distance) {
      const Slice theirs{Buffer::scratch, step % 2 * call.count, call.count};
      co_yield ScratchNeed{theirs.end()};
      const OpId landed = co_yield recv(me - distance, theirs, step)
                              .after(slot_free[step % 2], lockstep ? ready : kNoOp)
                              .in_round(step);
      ready = slot_free[step % 2] = co_yield reduce(output(all), theirs).after(landed, ready, now);
    }
    sent = now;
  }
}

}  // namespace latecomer::core::algorithms::scan

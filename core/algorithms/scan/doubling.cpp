// SPDX-License-Identifier: BSD-3-Clause
// scan/doubling. Recursive doubling; rank r gets the result over ranks 0 to r.
// Steps: In step k, rank r sends its partial result, over its last 2^k ranks, to rank r + 2^k. It combines the partial
// result of rank r - 2^k from the left. This takes one reduction per step, and half of the messages of an exchange.
// Cost: ceil(log2 P) (alpha + N beta + N gamma) for P ranks and N bytes.
// Operands: rank order.
// Buffers: 2 N of scratch.
// Source: Hillis, Steele 1986 (CACM 29).
#include "core/algorithms/algorithm.hpp"

namespace latecomer::core::algorithms::scan {

Schedule doubling(const Instance& instance, Rank me) {
  const Call& call = instance.call;
  const Part all{0, call.count};
  if (call.count == 0) co_return;
  const bool lockstep = !instance.parameters.overlap;
  OpId ready = kNoOp;  // the operation that produced the partial result
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

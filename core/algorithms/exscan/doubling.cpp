// SPDX-License-Identifier: BSD-3-Clause
// exscan/doubling. Recursive doubling; rank r gets the result over ranks 0 to r - 1.
// Steps: As scan/doubling. A rank combines a received partial result from the left twice: with its result, which
// excludes its own contribution, and with the partial result that it forwards.
// Cost: ceil(log2 P) (alpha + N beta + 2 N gamma) for P ranks and N bytes.
// Operands: rank order.
// Buffers: 3 N of scratch.
// Source: Hillis, Steele 1986 (CACM 29).
#include "core/algorithms/algorithm.hpp"

namespace latecomer::core::algorithms::exscan {

Schedule doubling(const Instance& instance, Rank me) {
  const Call& call = instance.call;
  const Part all{0, call.count};
  if (call.count == 0 || call.ranks == 1) co_return;
  const bool lockstep = !instance.parameters.overlap;
  const Slice passed{Buffer::scratch, 0, call.count};  // the result over the last 2^k ranks including this one
  co_yield ScratchNeed{call.count};
  const OpId begun = co_yield copy(passed, own(call, all));
  OpId ready = begun, result = begun, sent = kNoOp;
  OpId slot_free[2] = {kNoOp, kNoOp};
  int step = 0;
  for (int distance = 1; distance < call.ranks; distance *= 2, ++step) {
    OpId now = kNoOp;
    if (me + distance < call.ranks)
      now = co_yield send(me + distance, passed, step).after(ready, lockstep ? sent : kNoOp).in_round(step);
    if (me >= distance) {
      const Slice theirs{Buffer::scratch, (1 + step % 2) * call.count, call.count};
      co_yield ScratchNeed{theirs.end()};
      const OpId landed = co_yield recv(me - distance, theirs, step)
                              .after(slot_free[step % 2], lockstep ? ready : kNoOp)
                              .in_round(step);
      const Operation put = step == 0 ? copy(output(all), theirs) : reduce(output(all), theirs);
      result = slot_free[step % 2] = co_yield put.after(landed, result);
      if (me + 2 * distance < call.ranks)
        ready = slot_free[step % 2] = co_yield reduce(passed, theirs).after(landed, ready, now, result);
    }
    sent = now;
  }
}

}  // namespace latecomer::core::algorithms::exscan

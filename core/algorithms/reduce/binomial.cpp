// SPDX-License-Identifier: BSD-3-Clause
// reduce/binomial. The binomial tree.
// Steps: Ranks are numbered from the root, or from rank 0 for non-commutative operators. In step k, a rank whose number
// has bit k sends its partial result to the number 2^k below and is done. If the tree ends at rank 0, this rank sends
// the result to the root.
// Cost: ceil(log2 P) (alpha + N beta + N gamma) for P ranks and N bytes. Best for short vectors.
// Operands: rank order for non-commutative operators, otherwise rotated rank order.
// Buffers: up to 2 N of scratch.
// Source: Thakur, Rabenseifner, Gropp 2005 (IJHPCA 19), section 4.4; BNOM in Proficz, Ocetkiewicz 2021 (J.
// Supercomputing 77), section 6.
#include "core/algorithms/algorithm.hpp"

namespace latecomer::core::algorithms::reduce {

Schedule binomial(const Instance& instance, Rank me) {
  const Call& call = instance.call;
  const Part all{0, call.count};
  if (call.count == 0) co_return;
  enum { kTree = 0, kForward = 40 };  // channels; kTree is the first of one per step, and log2 P is at most 31
  const Rank top = call.commutative ? call.root : 0;
  const int id = (me - top + call.ranks) % call.ranks;
  const auto rank_of = [&](int virtual_rank) { return (virtual_rank + top) % call.ranks; };
  const bool root = me == call.root, lockstep = !instance.parameters.overlap;
  if (call.ranks == 1) {
    if (!call.in_place) co_yield copy(output(all), own(call, me, all));
    co_return;
  }
  // `value` is the partial result; `spare` receives the next one. The output of the root is one of the buffers if the
  // tree ends at the root.
  Slice value = own(call, me, all), spare{Buffer::scratch, 0, call.count},
        other{Buffer::scratch, call.count, call.count};
  if (root && me == top && !call.in_place) {
    other = output(all);
    std::swap(spare, other);
  }
  OpId ready = kNoOp, spare_free = kNoOp, sent = kNoOp;
  int step = 0;
  for (int mask = 1; mask < call.ranks; mask <<= 1, ++step) {
    if (id & mask) {
      sent = co_yield send(rank_of(id - mask), value, kTree + step).after(ready).in_round(step);
      break;
    }
    if (id + mask >= call.ranks) continue;
    co_yield ScratchNeed{spare.buffer == Buffer::scratch ? spare.end() : 0};
    const OpId landed = co_yield recv(rank_of(id + mask), spare, kTree + step)
                            .after(spare_free, lockstep ? ready : kNoOp)
                            .in_round(step);
    const bool writable = value.buffer != Buffer::input;
    if (writable && call.commutative) {
      spare_free = ready = co_yield core::reduce(value, spare).after(landed, ready);
    } else {
      // The own value is the left operand, because the sender has the contributions of higher ranks.
      spare_free = ready = co_yield core::reduce(spare, value).after(landed, ready);
      const Slice old = value;
      value = spare;
      spare = writable ? old : other;
    }
  }
  if (me == top && !root) co_yield send(call.root, value, kForward).after(ready).in_round(step);
  if (me == top && root && value.buffer != Buffer::output) co_yield copy(output(all), value).after(ready);
  if (me != top && root) co_yield recv(top, output(all), kForward).after(sent).in_round(step);
}

}  // namespace latecomer::core::algorithms::reduce

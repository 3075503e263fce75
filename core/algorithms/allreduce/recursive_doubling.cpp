// SPDX-License-Identifier: BSD-3-Clause
// allreduce/recursive_doubling. Steps: ranks beyond the largest power of two are folded into their
// neighbours (2i into 2i+1); then in step k partners at distance 2^k exchange whole vectors; the folded
// ranks get the result. Operands are combined in rank order on both sides, so all ranks agree bit by bit.
// Cost: ceil(log2 P) (alpha + N beta + N gamma), plus two messages where P is no power of two.
// Best for short vectors. Buffers: N of scratch.
// Source: Thakur, Rabenseifner, Gropp, IJHPCA 2005, section 4.5.
#include "core/algorithms/halving.hpp"

namespace latecomer::core::algorithms::allreduce {

Schedule recursive_doubling(const Instance& instance, Rank me) {
  const Call& call = instance.call;
  const Part all{0, call.count};
  if (call.count == 0) co_return;
  const Folding folding(call.ranks);
  const bool lockstep = !instance.parameters.overlap;
  enum { kFold = 0, kUnfold = 1, kExchange = 2 };

  if (folding.gives(me)) {
    const OpId sent = co_yield send(me + 1, own(call, all), kFold);
    co_yield recv(me + 1, output(all), kUnfold).after(sent);
    co_return;
  }
  OpId ready = kNoOp;  // produced the current value
  if (!call.in_place) ready = co_yield copy(output(all), own(call, all));
  if (call.ranks == 1) co_return;
  co_yield ScratchNeed{call.count};
  Slice current = output(all), spare{Buffer::scratch, 0, call.count};
  if (folding.takes(me)) {
    const OpId landed = co_yield recv(me - 1, spare, kFold);
    ready = co_yield reduce(current, spare).after(landed, ready);
  }
  OpId spare_free = ready;  // the spare buffer is no longer read
  OpId spare_sent = kNoOp, previous_sent = kNoOp;
  for (int mask = 1, step = 0; mask < folding.pow2(); mask <<= 1, ++step) {
    const Rank partner = folding.rank_of(folding.id_of(me) ^ mask);
    const OpId sent =
        co_yield send(partner, current, kExchange + step).after(ready, lockstep ? previous_sent : kNoOp).in_round(step);
    const OpId landed = co_yield recv(partner, spare, kExchange + step)
                            .after(spare_free, spare_sent, lockstep ? previous_sent : kNoOp)
                            .in_round(step);
    if (partner < me) {
      ready = co_yield reduce(current, spare).after(landed, sent, ready);  // partner o mine
      spare_sent = kNoOp;
    } else {
      ready = co_yield reduce(spare, current).after(landed, ready);  // mine o partner
      std::swap(current, spare);
      spare_sent = sent;
    }
    spare_free = ready;
    previous_sent = sent;
  }
  if (current.buffer != Buffer::output) ready = co_yield copy(output(all), current).after(ready, spare_sent);
  if (folding.takes(me)) co_yield send(me - 1, output(all), kUnfold).after(ready);
}

}  // namespace latecomer::core::algorithms::allreduce

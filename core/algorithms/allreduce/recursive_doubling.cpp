// SPDX-License-Identifier: BSD-3-Clause
// allreduce/recursive_doubling. Partners exchange and combine whole vectors.
// Steps: Folding reduces the number of ranks to a power of two: rank 2i sends its vector to rank 2i+1. In step k,
// partners at distance 2^k exchange their vectors, and both combine them. At the end, rank 2i receives the result from
// rank 2i+1.
// Cost: ceil(log2 P) (alpha + N beta + N gamma) for P ranks and N bytes, plus two messages where P is no power of two.
// Best for short vectors.
// Operands: rank order on both partners, so all ranks get the same bits.
// Buffers: N of scratch.
// Source: Thakur, Rabenseifner, Gropp 2005 (IJHPCA 19), section 4.5.
#include "core/algorithms/halving.hpp"

namespace latecomer::core::algorithms::allreduce {

Schedule recursive_doubling(const Instance& instance, Rank me) {
  const Call& call = instance.call;
  const Part all{0, call.count};
  if (call.count == 0) co_return;
  const Folding folding(call.ranks);
  const bool lockstep = !instance.parameters.overlap;
  enum { kFold = 0, kUnfold = 1, kExchange = 2 };  // channels; kExchange is the first of one per step

  if (folding.gives(me)) {
    const OpId sent = co_yield send(me + 1, own(call, all), kFold);
    co_yield recv(me + 1, output(all), kUnfold).after(sent);
    co_return;
  }
  OpId ready = kNoOp;  // the operation that produced the current value
  if (!call.in_place) ready = co_yield copy(output(all), own(call, all));
  if (call.ranks == 1) co_return;
  co_yield ScratchNeed{call.count};
  Slice current = output(all), spare{Buffer::scratch, 0, call.count};
  if (folding.takes(me)) {
    const OpId landed = co_yield recv(me - 1, spare, kFold);
    ready = co_yield reduce(current, spare).after(landed, ready);
  }
  OpId spare_free = ready;  // the last operation that reads the spare buffer
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

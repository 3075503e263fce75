// SPDX-License-Identifier: BSD-3-Clause
// allgather/ring. Blocks travel around a ring.
// Steps: In step t, rank r sends block r - t to rank r + 1.
// Cost: (P-1) (alpha + b beta) for P ranks and blocks of b bytes. Best for long blocks. Suits blocks of different
// sizes, because every message is one block.
// Operands: none.
// Buffers: none.
// Source: Thakur, Rabenseifner, Gropp 2005 (IJHPCA 19), section 4.1.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::allgather {

Schedule ring(const Instance& instance, Rank me) {
  const Call& call = instance.call;
  const int ranks = call.ranks;
  if (call.count == 0) co_return;
  const auto block = [&](int r) { return output({(r + ranks) % ranks * call.count, call.count}); };
  OpId have = kNoOp, sent = kNoOp;  // have: the operation that produced the block to send in the next step
  if (!call.in_place) have = co_yield copy(block(me), {Buffer::input, 0, call.count});
  Window sends, recvs;
  for (int t = 0; t < ranks - 1; ++t) {
    const OpId wait = instance.parameters.overlap ? kNoOp : sent;
    const OpId before = instance.parameters.overlap ? kNoOp : have;
    const int channel = t % (2 * kWindow);
    sent = co_yield send((me + 1) % ranks, block(me - t), channel).after(have, sends.oldest(), wait).in_round(t);
    sends.push(sent);
    have = co_yield recv((me - 1 + ranks) % ranks, block(me - 1 - t), channel)
               .after(recvs.oldest(), wait, before)
               .in_round(t);
    recvs.push(have);
  }
}

}  // namespace latecomer::core::algorithms::allgather

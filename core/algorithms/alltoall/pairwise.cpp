// SPDX-License-Identifier: BSD-3-Clause
// alltoall/pairwise. Every rank sends each block directly.
// Steps: In step t, rank r sends to rank r + t and receives from rank r - t. Up to eight steps are in flight.
// Cost: (P-1) (alpha + b beta) for P ranks and blocks of b bytes.
// Operands: none.
// Buffers: in-place calls P b of scratch, others none.
// Source: Thakur, Rabenseifner, Gropp 2005 (IJHPCA 19), section 4.3.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::alltoall {

Schedule pairwise(const Instance& instance, Rank me) {
  const Call& call = instance.call;
  const int ranks = call.ranks;
  if (call.count == 0) co_return;
  const auto block = [&](Buffer buffer, Rank r) { return Slice{buffer, r * call.count, call.count}; };
  const Buffer source = call.in_place ? Buffer::scratch : Buffer::input;
  OpId saved = kNoOp;
  if (call.in_place) {
    co_yield ScratchNeed{ranks * call.count};
    saved = co_yield copy({Buffer::scratch, 0, ranks * call.count}, {Buffer::output, 0, ranks * call.count});
  } else {
    co_yield copy(block(Buffer::output, me), block(Buffer::input, me));
  }
  PeerWindow sends, recvs;
  OpId sent = kNoOp, landed = kNoOp;
  for (int t = 1; t < ranks; ++t) {
    const OpId wait = instance.parameters.overlap ? kNoOp : sent, before = instance.parameters.overlap ? kNoOp : landed;
    const Rank to = (me + t) % ranks, from = (me - t + ranks) % ranks;
    landed =
        co_yield recv(from, block(Buffer::output, from), 0).after(saved, recvs.oldest(), wait, before).in_round(t - 1);
    recvs.push(landed);
    sent = co_yield send(to, block(source, to), 0).after(saved, sends.oldest(), wait, before).in_round(t - 1);
    sends.push(sent);
  }
}

}  // namespace latecomer::core::algorithms::alltoall

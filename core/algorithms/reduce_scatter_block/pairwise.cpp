// SPDX-License-Identifier: BSD-3-Clause
// reduce_scatter_block/pairwise. Every rank receives all contributions to its block directly.
// Steps: Every rank sends each other rank its block and combines the received blocks from the left. For commutative
// operators, blocks come from ranks r - 1, r - 2, ...; otherwise from the last rank down to the first.
// Cost: (P-1) (alpha + b beta + b gamma) for P ranks and blocks of b bytes.
// Operands: rank order for non-commutative operators, otherwise rotated rank order.
// Buffers: up to 9 b of scratch.
// Source: Thakur, Rabenseifner, Gropp 2005 (IJHPCA 19), section 4.6.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::reduce_scatter_block {

Schedule pairwise(const Instance& instance, Rank me) {
  const Call& call = instance.call;
  const int ranks = call.ranks;
  if (call.count == 0) co_return;
  const Buffer source = call.in_place ? Buffer::output : Buffer::input;
  const auto block = [&](Rank r) { return Slice{source, r * call.count, call.count}; };
  const auto slot = [&](int at) { return Slice{Buffer::scratch, at * call.count, call.count}; };
  // In place, the place of the result may hold blocks that are not sent yet.
  const Slice result = call.in_place ? slot(kPeerWindow) : output({0, call.count});
  if (ranks > 1 || call.in_place) co_yield ScratchNeed{(kPeerWindow + (call.in_place ? 1 : 0)) * call.count};
  const int first = call.commutative ? me : ranks - 1;
  const bool lockstep = !instance.parameters.overlap;
  PeerWindow sends, recvs;
  OpId ready = kNoOp, sent = kNoOp;
  OpId first_gone = kNoOp;  // the send of block 0, which the result overwrites in place
  if (first == me) ready = co_yield copy(result, block(me));
  for (int t = call.commutative ? 1 : 0; t < ranks; ++t) {
    // Non-commutative: posts all sends at once, because the order in which their receivers are ready is unknown.
    const Rank to = (me + t) % ranks, from = (first - t + ranks) % ranks;
    const OpId wait = lockstep && call.commutative ? sent : kNoOp;
    const OpId before = lockstep && call.commutative ? ready : kNoOp;
    if (to != me) {
      sent = co_yield send(to, block(to), 0).after(call.commutative ? sends.oldest() : kNoOp, wait, before).in_round(t);
      sends.push(sent);
      if (to == 0) first_gone = sent;
    }
    if (from == me) {
      if (t > 0) ready = co_yield reduce(result, block(me)).after(ready);
    } else if (t == 0) {
      ready = co_yield recv(from, result, 0).in_round(t);
    } else {
      const Slice theirs = slot(recvs.slot());
      const OpId landed = co_yield recv(from, theirs, 0).after(recvs.oldest(), wait, before).in_round(t);
      ready = co_yield reduce(result, theirs).after(landed, ready);
      recvs.push(ready);
    }
  }
  if (!call.in_place) co_return;
  co_yield copy(output({0, call.count}), result).after(ready, first_gone);
}

}  // namespace latecomer::core::algorithms::reduce_scatter_block

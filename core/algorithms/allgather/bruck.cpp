// SPDX-License-Identifier: BSD-3-Clause
// allgather/bruck. Ranks double the number of their blocks in each step.
// Steps: In step k, rank r holds the blocks of 2^k ranks from its own on. It sends them to rank r - 2^k and receives as
// many from rank r + 2^k. Every block is received at its final place, in two messages where the range of blocks wraps
// around, so no rotation is necessary at the end.
// Cost: ceil(log2 P) alpha + (P-1) b beta for P ranks and blocks of b bytes; a step with two messages adds an alpha.
// Best for short blocks.
// Operands: none.
// Buffers: none.
// Source: Bruck et al. 1997 (IEEE TPDS 8).
#include "core/algorithms/algorithm.hpp"

namespace latecomer::core::algorithms::allgather {

Schedule bruck(const Instance& instance, Rank me) {
  const Call& call = instance.call;
  const int ranks = call.ranks;
  if (call.count == 0) co_return;
  const auto blocks = [&](int from, int n) { return output({from * call.count, n * call.count}); };
  OpId have = kNoOp, sent = kNoOp;
  if (!call.in_place) have = co_yield copy(blocks(me, 1), {Buffer::input, 0, call.count});
  int step = 0;
  for (int distance = 1; distance < ranks; distance *= 2, ++step) {
    const int n = std::min(distance, ranks - distance);
    const Rank to = (me - distance + ranks) % ranks, from = (me + distance) % ranks;
    const OpId before = instance.parameters.overlap ? kNoOp : have,
               was_sent = instance.parameters.overlap ? kNoOp : sent;
    OpId landed[2] = {kNoOp, kNoOp};
    for (const bool wrapped : {false, true}) {
      const auto piece = [&](int first) {
        const int straight = std::min(n, ranks - first);
        return wrapped ? blocks(0, n - straight) : blocks(first, straight);
      };
      const int channel = 2 * step + wrapped;
      if (const Slice mine = piece(me); mine.count > 0)
        sent = co_yield send(to, mine, channel).after(have, was_sent).in_round(step);
      if (const Slice theirs = piece(from); theirs.count > 0)
        landed[wrapped] = co_yield recv(from, theirs, channel).after(before, was_sent).in_round(step);
    }
    if (2 * distance < ranks) have = co_yield copy(blocks(0, 0), blocks(0, 0)).after(have, landed[0], landed[1]);
  }
}

}  // namespace latecomer::core::algorithms::allgather

// SPDX-License-Identifier: BSD-3-Clause
// allgather/bruck. Steps: whoever has the blocks of 2^k ranks from its own on sends them to r - 2^k and gets as many
// from r + 2^k; blocks go to where they belong at once, in two messages where they wrap around, instead of being turned
// at the end. Cost: ceil(log2 P) alpha (some twice) + (P-1) b beta. Best for short blocks. Buffers: none. Operands:
// none. Source: Bruck et al., IEEE TPDS 8 (1997).
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

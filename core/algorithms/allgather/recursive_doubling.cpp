// SPDX-License-Identifier: BSD-3-Clause
// allgather/recursive_doubling. Partners exchange all blocks that they hold.
// Steps: Partners at distance 1, 2, 4, ... exchange their blocks, which are contiguous. Runs bruck if P is no power of
// two.
// Cost: log2 P alpha + (P-1) b beta for blocks of b bytes and P ranks, P a power of two. Best for short blocks.
// Operands: none.
// Buffers: none.
// Source: Thakur, Rabenseifner, Gropp 2005 (IJHPCA 19), section 4.1.
#include <bit>

#include "core/algorithms/algorithm.hpp"

namespace latecomer::core::algorithms::allgather {

Schedule bruck(const Instance& instance, Rank me);

namespace {

Schedule doubling(const Instance& instance, Rank me) {
  const Call& call = instance.call;
  if (call.count == 0) co_return;
  const auto blocks = [&](int from, int n) { return output({from * call.count, n * call.count}); };
  OpId have = kNoOp, sent = kNoOp;
  if (!call.in_place) have = co_yield copy(blocks(me, 1), {Buffer::input, 0, call.count});
  for (int distance = 1, step = 0; distance < call.ranks; distance *= 2, ++step) {
    const Rank partner = me ^ distance;
    const OpId was_sent = instance.parameters.overlap ? kNoOp : sent,
               before = instance.parameters.overlap ? kNoOp : have;
    sent =
        co_yield send(partner, blocks(me / distance * distance, distance), step).after(have, was_sent).in_round(step);
    const OpId landed = co_yield recv(partner, blocks(partner / distance * distance, distance), step)
                            .after(before, was_sent)
                            .in_round(step);
    if (2 * distance < call.ranks) have = co_yield copy(blocks(0, 0), blocks(0, 0)).after(have, landed);
  }
}

}  // namespace

Schedule recursive_doubling(const Instance& instance, Rank me) {
  return std::has_single_bit(static_cast<unsigned>(instance.call.ranks)) ? doubling(instance, me) : bruck(instance, me);
}

}  // namespace latecomer::core::algorithms::allgather

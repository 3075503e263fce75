// SPDX-License-Identifier: BSD-3-Clause
// reduce_scatter_block/recursive_halving. Partners exchange halves of their blocks.
// Steps: Partners at distance P/2, P/4, ..., 1 send each other the half of their blocks that the other side keeps, and
// combine the received blocks with their own. Runs pairwise if P is no power of two or the operator is not commutative.
// Cost: log2 P alpha + (P-1) b (beta + gamma) for blocks of b bytes and P ranks, P a power of two.
// Operands: by distance, so commutative operators only.
// Buffers: 3/4 P b of scratch.
// Source: Thakur, Rabenseifner, Gropp 2005 (IJHPCA 19), section 4.6.
#include <bit>

#include "core/algorithms/algorithm.hpp"

namespace latecomer::core::algorithms::reduce_scatter_block {

Schedule pairwise(const Instance& instance, Rank me);

namespace {

Schedule halving(const Instance& instance, Rank me) {
  const Call& call = instance.call;
  const int ranks = call.ranks, half = ranks / 2;
  if (call.count == 0) co_return;
  const Buffer source = call.in_place ? Buffer::output : Buffer::input;
  const auto own = [&](int from, int n) { return Slice{source, from * call.count, n * call.count}; };
  // The scratch has the blocks of the half that the first step keeps, then the blocks that later steps receive.
  const int base = me / half * half;
  const auto sums = [&](int from, int n) { return Slice{Buffer::scratch, (from - base) * call.count, n * call.count}; };
  const auto landing = [&](int n) { return Slice{Buffer::scratch, half * call.count, n * call.count}; };
  co_yield ScratchNeed{(half + half / 2) * call.count};
  const bool lockstep = !instance.parameters.overlap;
  OpId ready = kNoOp, sent = kNoOp, first_sent = kNoOp;
  for (int distance = half, step = 0; distance >= 1; distance /= 2, ++step) {
    const Rank partner = me ^ distance;
    const int mine = me / distance * distance, theirs = partner / distance * distance;
    const OpId was_sent = lockstep ? sent : kNoOp, before = lockstep ? ready : kNoOp;
    sent = co_yield send(partner, step == 0 ? own(theirs, distance) : sums(theirs, distance), step)
               .after(ready, was_sent)
               .in_round(step);
    if (step == 0) {
      first_sent = sent;
      const OpId landed = co_yield recv(partner, sums(mine, distance), step).in_round(step);
      ready = co_yield reduce(sums(mine, distance), own(mine, distance)).after(landed);
    } else {
      const OpId landed = co_yield recv(partner, landing(distance), step)
                              .after(before, was_sent, step > 1 ? ready : kNoOp)
                              .in_round(step);
      ready = co_yield reduce(sums(mine, distance), landing(distance)).after(landed, ready);
    }
  }
  // In place, the result may overwrite blocks of the first send.
  co_yield copy(output({0, call.count}), sums(me, 1)).after(ready, first_sent);
}

}  // namespace

Schedule recursive_halving(const Instance& instance, Rank me) {
  const bool halves = instance.call.ranks > 1 && instance.call.commutative &&
                      std::has_single_bit(static_cast<unsigned>(instance.call.ranks));
  return halves ? halving(instance, me) : pairwise(instance, me);
}

}  // namespace latecomer::core::algorithms::reduce_scatter_block

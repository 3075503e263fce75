// SPDX-License-Identifier: BSD-3-Clause
// barrier/dissemination. Steps: in step k rank r tells r + 2^k and hears of r - 2^k. Cost: ceil(log2 P) alpha.
// Buffers: none. Operands: none. Source: Hensgen, Finkel, Manber, Int. J. Parallel Programming 17 (1988).
#include "core/algorithms/algorithm.hpp"

namespace latecomer::core::algorithms::barrier {

Schedule dissemination(const Instance& instance, Rank me) {
  const int ranks = instance.call.ranks;
  const Slice nothing{Buffer::output, 0, 0};
  OpId heard = kNoOp, told = kNoOp;
  int step = 0;
  for (int distance = 1; distance < ranks; distance *= 2, ++step) {
    // A send in flight is no reason to wait, except in lockstep.
    const OpId now = co_yield send((me + distance) % ranks, nothing, step)
                         .after(heard, instance.parameters.overlap ? kNoOp : told)
                         .in_round(step);
    heard = co_yield recv((me - distance + ranks) % ranks, nothing, step)
                .after(heard, instance.parameters.overlap ? kNoOp : told)
                .in_round(step);
    told = now;
  }
}

}  // namespace latecomer::core::algorithms::barrier

// SPDX-License-Identifier: BSD-3-Clause
// barrier/dissemination. Every rank learns of all arrivals in log2 P steps.
// Steps: In step k, rank r sends an empty message to rank r + 2^k and receives one from rank r - 2^k.
// Cost: ceil(log2 P) alpha for P ranks.
// Operands: none.
// Buffers: none.
// Source: Hensgen, Finkel, Manber 1988 (Int. J. Parallel Programming 17).
#include "core/algorithms/algorithm.hpp"

namespace latecomer::core::algorithms::barrier {

Schedule dissemination(const Instance& instance, Rank me) {
  const int ranks = instance.call.ranks;
  const Slice nothing{Buffer::output, 0, 0};
  OpId heard = kNoOp, told = kNoOp;
  int step = 0;
  for (int distance = 1; distance < ranks; distance *= 2, ++step) {
    // Only lockstep waits for the previous send.
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

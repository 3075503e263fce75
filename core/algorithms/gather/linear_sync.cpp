// SPDX-License-Identifier: BSD-3-Clause
// gather/linear_sync. Steps: for every rank in rank order the root posts the receive of a first segment, sends a token,
// posts the receive of the rest and waits for the first; nobody sends without its token. Cost: alpha + (P-1) (2 alpha +
// b beta). Buffers: none. Operands: none. Source: paper 001, section 2.1 (LS), after Open MPI.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::gather {

Schedule linear_sync(const Instance& instance, Rank me) {
  return gather_synchronised(instance, me, instance.rank_order, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::gather

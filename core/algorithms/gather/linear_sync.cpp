// SPDX-License-Identifier: BSD-3-Clause
// gather/linear_sync. The linear gather with synchronization.
// Steps: The root handles the ranks in rank order. It posts the receive of a first segment, sends a token, posts the
// receive of the rest, and waits for the first segment. A rank sends nothing before it has its token.
// Cost: alpha + (P-1) (2 alpha + b beta) for P ranks and blocks of b bytes.
// Operands: none.
// Buffers: none.
// Source: LS in Proficz 2020 (Cluster Computing 23), section 2.1, after Open MPI.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::gather {

Schedule linear_sync(const Instance& instance, Rank me) {
  return gather_synchronised(instance, me, instance.rank_order, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::gather

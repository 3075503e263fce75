// SPDX-License-Identifier: BSD-3-Clause
// gather/sls. The sorted linear gather with synchronization.
// Steps: As linear_sync, in the order of arrival.
// Cost: alpha + (P-1) (2 alpha + b beta) for P ranks and blocks of b bytes.
// Operands: none.
// Buffers: none.
// Source: SLS in Proficz 2020 (Cluster Computing 23), section 4.2.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::gather {

Schedule sls(const Instance& instance, Rank me) {
  return gather_synchronised(instance, me, instance.order, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::gather

// SPDX-License-Identifier: BSD-3-Clause
// scatter/linear. The root sends in rank order.
// Steps: The root sends every rank its block, in rank order.
// Cost: (P-1) (alpha + b beta) for P ranks and blocks of b bytes. A late receiver delays all receivers after it.
// Operands: none.
// Buffers: none.
// Source: LIN in Proficz 2020 (Cluster Computing 23), section 2.1.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::scatter {

Schedule linear(const Instance& instance, Rank me) {
  return list_from_root(instance, me, instance.rank_order, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::scatter

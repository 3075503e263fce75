// SPDX-License-Identifier: BSD-3-Clause
// gather/linear. The root receives in rank order.
// Steps: The root receives every block, in rank order.
// Cost: (P-1) (alpha + b beta) for P ranks and blocks of b bytes.
// Operands: none.
// Buffers: none.
// Source: LIN in Proficz 2020 (Cluster Computing 23), section 2.1.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::gather {

Schedule linear(const Instance& instance, Rank me) { return gather_list(instance, me, instance.rank_order); }

}  // namespace latecomer::core::algorithms::gather

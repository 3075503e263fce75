// SPDX-License-Identifier: BSD-3-Clause
// gather/linear. Steps: the root receives every block, in rank order. Cost: (P-1) (alpha + b beta). Buffers: none.
// Operands: none. Source: paper 001, section 2.1 (LIN).
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::gather {

Schedule linear(const Instance& instance, Rank me) { return gather_list(instance, me, instance.rank_order); }

}  // namespace latecomer::core::algorithms::gather

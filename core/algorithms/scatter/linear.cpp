// SPDX-License-Identifier: BSD-3-Clause
// scatter/linear. Steps: the root sends every rank its block, in rank order. Cost: (P-1) (alpha + b beta); a late
// receiver holds up all behind it. Buffers: none. Operands: none. Source: paper 001, section 2.1 (LIN).
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::scatter {

Schedule linear(const Instance& instance, Rank me) {
  return list_from_root(instance, me, instance.rank_order, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::scatter

// SPDX-License-Identifier: BSD-3-Clause
// gather/sbn. The sorted binomial tree.
// Steps: As binomial, over virtual ranks: a rank that arrives early sends in an early phase, and the latest ranks are
// next to the root. The root permutes the blocks at the end.
// Cost: log2 P alpha + (P-1) b beta for blocks of b bytes and P ranks, P a power of two.
// Operands: none.
// Buffers: the blocks of the subtree in scratch; P b at the root.
// Source: SBN in Proficz 2020 (Cluster Computing 23), section 4.2.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::gather {

Schedule sbn(const Instance& instance, Rank me) {
  return gather_tree(instance, me, Placing::early_far, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::gather

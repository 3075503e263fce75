// SPDX-License-Identifier: BSD-3-Clause
// scatter/sbn. The sorted binomial tree.
// Steps: As binomial, over virtual ranks: a rank that arrives early receives in an early phase. The root permutes the
// blocks to match.
// Cost: r = log2 P alpha + (P-1) b beta for blocks of b bytes and P ranks, P a power of two. One receiver late by D:
// max(D + alpha + b beta, r).
// Operands: none.
// Buffers: the blocks of the subtree in scratch; P b at the root.
// Source: SBN in Proficz 2020 (Cluster Computing 23), section 4.1.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::scatter {

Schedule sbn(const Instance& instance, Rank me) {
  return scatter_tree(instance, me, Placing::early_near, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::scatter

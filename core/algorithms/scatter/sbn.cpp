// SPDX-License-Identifier: BSD-3-Clause
// scatter/sbn, sorted binomial. Steps: as binomial, over virtual ranks: who arrives early receives in an early phase;
// the root permutes the blocks to match. Cost: log2 P alpha + (P-1) b beta, P a power of two; one receiver late by D:
// max(D + alpha + b beta, that). Buffers: the subtree's blocks of scratch, P b at the root. Operands: none.
// Source: paper 001, section 4.1 (SBN).
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::scatter {

Schedule sbn(const Instance& instance, Rank me) {
  return scatter_tree(instance, me, Placing::early_near, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::scatter

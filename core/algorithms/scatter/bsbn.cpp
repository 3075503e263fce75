// SPDX-License-Identifier: BSD-3-Clause
// scatter/bsbn, background sorted binomial. Steps: as sbn; receives, and passing on what came, do not wait for the
// process. Cost: log2 P alpha + (P-1) b beta, P a power of two; one receiver late by D: max(D, that). Buffers: the
// subtree's blocks of scratch, P b at the root. Operands: none. Source: paper 001, section 4.1 (BSBN).
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::scatter {

Schedule bsbn(const Instance& instance, Rank me) {
  return scatter_tree(instance, me, Placing::early_near, Lane::background);
}

}  // namespace latecomer::core::algorithms::scatter

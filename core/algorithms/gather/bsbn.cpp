// SPDX-License-Identifier: BSD-3-Clause
// gather/bsbn, background sorted binomial. Steps: as sbn; receives do not wait for the process, sends do.
// Cost: log2 P alpha + (P-1) b beta, P a power of two; root late by D: max(D, that), then local copies.
// Buffers: the subtree's blocks of scratch, P b at the root. Operands: none. Source: paper 001, section 4.2 (BSBN).
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::gather {

Schedule bsbn(const Instance& instance, Rank me) {
  return gather_tree(instance, me, Placing::early_far, Lane::background);
}

}  // namespace latecomer::core::algorithms::gather

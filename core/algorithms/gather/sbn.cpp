// SPDX-License-Identifier: BSD-3-Clause
// gather/sbn, sorted binomial. Steps: as binomial, over virtual ranks: who arrives early sends in an early phase, the
// last sit next to the root, which permutes the blocks at the end. Cost: log2 P alpha + (P-1) b beta, P a power of two.
// Buffers: the subtree's blocks of scratch, P b at the root. Operands: none. Source: paper 001, section 4.2 (SBN).
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::gather {

Schedule sbn(const Instance& instance, Rank me) {
  return gather_tree(instance, me, Placing::early_far, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::gather

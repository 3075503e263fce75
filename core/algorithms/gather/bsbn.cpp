// SPDX-License-Identifier: BSD-3-Clause
// gather/bsbn. The background sorted binomial tree.
// Steps: As sbn. Receives do not wait for the arrival of the process; sends do.
// Cost: r = log2 P alpha + (P-1) b beta for blocks of b bytes and P ranks, P a power of two. Root late by D: max(D, r),
// then local copies.
// Operands: none.
// Buffers: the blocks of the subtree in scratch; P b at the root.
// Source: BSBN in Proficz 2020 (Cluster Computing 23), section 4.2.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::gather {

Schedule bsbn(const Instance& instance, Rank me) {
  return gather_tree(instance, me, Placing::early_far, Lane::background);
}

}  // namespace latecomer::core::algorithms::gather

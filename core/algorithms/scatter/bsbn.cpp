// SPDX-License-Identifier: BSD-3-Clause
// scatter/bsbn. The background sorted binomial tree.
// Steps: As sbn. Receives and the forwarding of data do not wait for the arrival of the process.
// Cost: r = log2 P alpha + (P-1) b beta for blocks of b bytes and P ranks, P a power of two. One receiver late by D:
// max(D, r).
// Operands: none.
// Buffers: the blocks of the subtree in scratch; P b at the root.
// Source: BSBN in Proficz 2020 (Cluster Computing 23), section 4.1.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::scatter {

Schedule bsbn(const Instance& instance, Rank me) {
  return scatter_tree(instance, me, Placing::early_near, Lane::background);
}

}  // namespace latecomer::core::algorithms::scatter

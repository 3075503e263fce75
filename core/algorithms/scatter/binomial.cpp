// SPDX-License-Identifier: BSD-3-Clause
// scatter/binomial. The binomial tree.
// Steps: The root sends each child the blocks of its subtree, the largest subtree first. Children do the same.
// Cost: log2 P alpha + (P-1) b beta for blocks of b bytes and P ranks, P a power of two.
// Operands: none.
// Buffers: the blocks of the subtree in scratch; at the root P b where its blocks are not contiguous.
// Source: BNOM in Proficz 2020 (Cluster Computing 23), section 2.1.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::scatter {

Schedule binomial(const Instance& instance, Rank me) {
  return scatter_tree(instance, me, Placing::rotated, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::scatter

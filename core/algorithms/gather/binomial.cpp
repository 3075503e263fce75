// SPDX-License-Identifier: BSD-3-Clause
// gather/binomial. The binomial tree.
// Steps: Every rank receives from its children, the smallest subtree first, and sends all blocks to its parent.
// Cost: log2 P alpha + (P-1) b beta for blocks of b bytes and P ranks, P a power of two.
// Operands: none.
// Buffers: the blocks of the subtree in scratch; at the root P b where its blocks are not contiguous.
// Source: BNOM in Proficz 2020 (Cluster Computing 23), section 2.1.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::gather {

Schedule binomial(const Instance& instance, Rank me) {
  return gather_tree(instance, me, Placing::rotated, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::gather

// SPDX-License-Identifier: BSD-3-Clause
// scatter/binomial. Steps: the root sends each child the blocks of its subtree, the largest subtree first; children do
// the same. Cost: log2 P alpha + (P-1) b beta, P a power of two. Buffers: the subtree's blocks of scratch; P b at the
// root where its blocks do not follow each other. Operands: none. Source: paper 001, section 2.1 (BN).
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::scatter {

Schedule binomial(const Instance& instance, Rank me) {
  return scatter_tree(instance, me, Placing::rotated, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::scatter

// SPDX-License-Identifier: BSD-3-Clause
// gather/binomial. Steps: everybody receives from its children, the smallest subtree first, and sends all to its
// parent. Cost: log2 P alpha + (P-1) b beta, P a power of two. Buffers: the subtree's blocks of scratch; P b at the
// root where its blocks do not follow each other. Operands: none. Source: paper 001, section 2.1 (BN).
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::gather {

Schedule binomial(const Instance& instance, Rank me) {
  return gather_tree(instance, me, Placing::rotated, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::gather

// SPDX-License-Identifier: BSD-3-Clause
// scatterv/two_block. Steps: small and large blocks are gathered in a tree each at the same time, then one message
// joins them. Here it is walked backwards, from the root on. Cost: ceil(log2 P') alpha + S beta, two sizes, S the sum
// of the blocks. Buffers: what a node passes on; none at leaves and at the root. Operands: none. Source: paper 003, 5.2
// (Lemma 2).
#include "core/algorithms/irregular.hpp"

namespace latecomer::core::algorithms::scatterv {

Schedule two_block(const Instance& instance, Rank me) { return along_tree(instance, me, TreeKind::two_block); }

}  // namespace latecomer::core::algorithms::scatterv

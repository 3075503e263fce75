// SPDX-License-Identifier: BSD-3-Clause
// gatherv/binary. The cheapest ordered binary tree.
// Steps: The ordered tree with the least time among those with at most two children per node.
// Cost: the least of all ordered binary trees.
// Operands: none.
// Buffers: an inner node has the blocks of its subtree in scratch; leaves and the root need none.
// Source: Träff 2019 (IEEE TPDS 30), section 4.3 (Theorem 3).
#include "core/algorithms/irregular.hpp"

namespace latecomer::core::algorithms::gatherv {

Schedule binary(const Instance& instance, Rank me) { return along_tree(instance, me, TreeKind::binary); }

}  // namespace latecomer::core::algorithms::gatherv

// SPDX-License-Identifier: BSD-3-Clause
// gatherv/optimal. The cheapest strongly ordered tree.
// Steps: The strongly ordered tree with the least time for the expected sizes and arrivals.
// Cost: the least of all strongly ordered trees.
// Operands: none.
// Buffers: an inner node has the blocks of its subtree in scratch; leaves and the root need none.
// Source: Träff 2019 (IEEE TPDS 30), section 4.2 (Theorem 2). docs/results/trees.md gives the extension to arrivals.
#include "core/algorithms/irregular.hpp"

namespace latecomer::core::algorithms::gatherv {

Schedule optimal(const Instance& instance, Rank me) { return along_tree(instance, me, TreeKind::optimal); }

}  // namespace latecomer::core::algorithms::gatherv

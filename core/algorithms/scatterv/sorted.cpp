// SPDX-License-Identifier: BSD-3-Clause
// scatterv/sorted. The cheapest ordered tree over several orders of the ranks.
// Steps: Sends the messages of gatherv/sorted in reverse order, from the root.
// Cost: the least of these trees.
// Operands: none.
// Buffers: an inner node has the blocks of its subtree in scratch; leaves and the root need none.
// Source: Träff 2019 (IEEE TPDS 30), section 5.1, after Träff 2004. docs/results/trees.md gives the extension to
// arrivals.
#include "core/algorithms/irregular.hpp"

namespace latecomer::core::algorithms::scatterv {

Schedule sorted(const Instance& instance, Rank me) { return along_tree(instance, me, TreeKind::sorted); }

}  // namespace latecomer::core::algorithms::scatterv

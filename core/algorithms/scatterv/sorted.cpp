// SPDX-License-Identifier: BSD-3-Clause
// scatterv/sorted. Steps: the cheapest ordered tree over several orders of the ranks: as they are, by size, by arrival,
// by both. Here it is walked backwards, from the root on. Cost: the least of ordered trees over ranks sorted by arrival
// and size, S the sum of the blocks. Buffers: what a node passes on; none at leaves and at the root. Operands: none.
// Source: paper 003, 5.1, after Traeff 2004; docs/trees.md.
#include "core/algorithms/irregular.hpp"

namespace latecomer::core::algorithms::scatterv {

Schedule sorted(const Instance& instance, Rank me) { return along_tree(instance, me, TreeKind::sorted); }

}  // namespace latecomer::core::algorithms::scatterv

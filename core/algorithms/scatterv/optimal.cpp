// SPDX-License-Identifier: BSD-3-Clause
// scatterv/optimal. Steps: the cheapest strongly ordered tree for the expected sizes and arrivals. Here it is walked
// backwards, from the root on. Cost: the least of any strongly ordered tree, S the sum of the blocks. Buffers: what a
// node passes on; none at leaves and at the root. Operands: none. Source: paper 003, 4.2 (Theorem 2); docs/trees.md.
#include "core/algorithms/irregular.hpp"

namespace latecomer::core::algorithms::scatterv {

Schedule optimal(const Instance& instance, Rank me) { return along_tree(instance, me, TreeKind::optimal); }

}  // namespace latecomer::core::algorithms::scatterv

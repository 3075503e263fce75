// SPDX-License-Identifier: BSD-3-Clause
// gatherv/binary. Steps: the cheapest ordered tree of at most two children per node. Cost: the least of any ordered
// tree of two children, S the sum of the blocks. Buffers: what a node passes on; none at leaves and at the root.
// Operands: none. Source: paper 003, 4.3 (Theorem 3).
#include "core/algorithms/irregular.hpp"

namespace latecomer::core::algorithms::gatherv {

Schedule binary(const Instance& instance, Rank me) { return along_tree(instance, me, TreeKind::binary); }

}  // namespace latecomer::core::algorithms::gatherv

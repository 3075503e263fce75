// SPDX-License-Identifier: BSD-3-Clause
// gatherv/linear. Steps: everybody sends its block to the root, in rank order. Cost: (P-1) alpha + S beta, S the sum of
// the blocks. Buffers: what a node passes on; none at leaves and at the root. Operands: none. Source: paper 003, 5.1;
// MPICH.
#include "core/algorithms/irregular.hpp"

namespace latecomer::core::algorithms::gatherv {

Schedule linear(const Instance& instance, Rank me) { return along_tree(instance, me, TreeKind::linear); }

}  // namespace latecomer::core::algorithms::gatherv

// SPDX-License-Identifier: BSD-3-Clause
// gatherv/linear. A star.
// Steps: Every rank sends its block to the root, in rank order.
// Cost: (P-1) alpha + S beta. P is the number of ranks, S the sum of the block sizes.
// Operands: none.
// Buffers: none.
// Source: Träff 2019 (IEEE TPDS 30), section 5.1; MPICH.
#include "core/algorithms/irregular.hpp"

namespace latecomer::core::algorithms::gatherv {

Schedule linear(const Instance& instance, Rank me) { return along_tree(instance, me, TreeKind::linear); }

}  // namespace latecomer::core::algorithms::gatherv

// SPDX-License-Identifier: BSD-3-Clause
// scatterv/linear. A star.
// Steps: Sends the messages of gatherv/linear in reverse order, from the root.
// Cost: (P-1) alpha + S beta. P is the number of ranks, S the sum of the block sizes.
// Operands: none.
// Buffers: none.
// Source: Träff 2019 (IEEE TPDS 30), section 5.1; MPICH.
#include "core/algorithms/irregular.hpp"

namespace latecomer::core::algorithms::scatterv {

Schedule linear(const Instance& instance, Rank me) { return along_tree(instance, me, TreeKind::linear); }

}  // namespace latecomer::core::algorithms::scatterv

// SPDX-License-Identifier: BSD-3-Clause
// scatterv/two_block. One tree for small blocks and one for large blocks.
// Steps: Sends the messages of gatherv/two_block in reverse order, from the root.
// Cost: at most max(ceil(log2 P1) alpha + S1 beta, ceil(log2 P2) alpha + S2 beta) + alpha + min(S1, S2) beta for a free
// root. Pi is the number of ranks in tree i, Si the sum of their block sizes.
// Operands: none.
// Buffers: an inner node has the blocks of its subtree in scratch; leaves and the root need none.
// Source: Träff 2019 (IEEE TPDS 30), section 5.2 (Lemma 2).
#include "core/algorithms/irregular.hpp"

namespace latecomer::core::algorithms::scatterv {

Schedule two_block(const Instance& instance, Rank me) { return along_tree(instance, me, TreeKind::two_block); }

}  // namespace latecomer::core::algorithms::scatterv

// SPDX-License-Identifier: BSD-3-Clause
// scatterv/binomial. The binomial tree that ignores block sizes.
// Steps: Sends the messages of gatherv/binomial in reverse order, from the root.
// Cost: log2 P alpha + up to log2 P S beta. P is the number of ranks, S the sum of the block sizes.
// Operands: none.
// Buffers: an inner node has the blocks of its subtree in scratch; leaves and the root need none.
// Source: Träff 2019 (IEEE TPDS 30), section 5.1 (oblivious trees).
#include "core/algorithms/irregular.hpp"

namespace latecomer::core::algorithms::scatterv {

Schedule binomial(const Instance& instance, Rank me) { return along_tree(instance, me, TreeKind::binomial); }

}  // namespace latecomer::core::algorithms::scatterv

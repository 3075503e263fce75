// SPDX-License-Identifier: BSD-3-Clause
// scatterv/adaptive. The binomial tree that adapts to block sizes.
// Steps: Sends the messages of gatherv/adaptive in reverse order, from the root.
// Cost: ceil(log2 P) alpha + S beta for a free root. P is the number of ranks, S the sum of the block sizes.
// Operands: none.
// Buffers: an inner node has the blocks of its subtree in scratch; leaves and the root need none.
// Source: Träff 2019 (IEEE TPDS 30), Proposition 1; Träff 2018.
#include "core/algorithms/irregular.hpp"

namespace latecomer::core::algorithms::scatterv {

Schedule adaptive(const Instance& instance, Rank me) { return along_tree(instance, me, TreeKind::adaptive); }

}  // namespace latecomer::core::algorithms::scatterv

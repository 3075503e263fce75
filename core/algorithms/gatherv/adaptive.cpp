// SPDX-License-Identifier: BSD-3-Clause
// gatherv/adaptive. The binomial tree that adapts to block sizes.
// Steps: As binomial, but the range that is cheaper to send sends to the other.
// Cost: ceil(log2 P) alpha + S beta for a free root. P is the number of ranks, S the sum of the block sizes.
// Operands: none.
// Buffers: an inner node has the blocks of its subtree in scratch; leaves and the root need none.
// Source: Träff 2019 (IEEE TPDS 30), Proposition 1; Träff 2018.
#include "core/algorithms/irregular.hpp"

namespace latecomer::core::algorithms::gatherv {

Schedule adaptive(const Instance& instance, Rank me) { return along_tree(instance, me, TreeKind::adaptive); }

}  // namespace latecomer::core::algorithms::gatherv

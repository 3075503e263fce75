// SPDX-License-Identifier: BSD-3-Clause
// scatterv/binomial. Steps: blocks are joined in rank order, whatever their sizes: of two neighbouring ranges of 2^k
// ranks the root of the second receives, or who has the root. Here it is walked backwards, from the root on. Cost: log2
// P alpha + up to log2 P S beta, S the sum of the blocks. Buffers: what a node passes on; none at leaves and at the
// root. Operands: none. Source: paper 003, 5.1 (oblivious).
#include "core/algorithms/irregular.hpp"

namespace latecomer::core::algorithms::scatterv {

Schedule binomial(const Instance& instance, Rank me) { return along_tree(instance, me, TreeKind::binomial); }

}  // namespace latecomer::core::algorithms::scatterv

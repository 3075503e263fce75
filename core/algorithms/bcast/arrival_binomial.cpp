// SPDX-License-Identifier: BSD-3-Clause
// bcast/arrival_binomial. The sorted binomial tree.
// Steps: As binomial, over virtual ranks: a rank that arrives early receives in an early phase.
// Cost: r = ceil(log2 P) (alpha + N beta) for P ranks and N bytes. One receiver late by D, if the tree has a leaf for
// it: max(D + alpha + N beta, r).
// Operands: none.
// Buffers: none.
// Source: SBN in Proficz 2020 (Cluster Computing 23), section 4.1, for a broadcast.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::bcast {

Schedule arrival_binomial(const Instance& instance, Rank me) {
  return bcast_tree(instance, me, Placing::early_near, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::bcast

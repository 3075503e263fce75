// SPDX-License-Identifier: BSD-3-Clause
// bcast/arrival_binomial. Steps: as binomial, over virtual ranks: who arrives early receives in an early phase.
// Cost: ceil(log2 P) (alpha + N beta); one receiver late by D: max(D + alpha + N beta, that), where others can be
// leaves. Buffers: none. Operands: none. Source: paper 001, section 4.1 (SBN), for a broadcast.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::bcast {

Schedule arrival_binomial(const Instance& instance, Rank me) {
  return bcast_tree(instance, me, Placing::early_near, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::bcast

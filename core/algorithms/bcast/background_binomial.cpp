// SPDX-License-Identifier: BSD-3-Clause
// bcast/background_binomial. The sorted binomial tree in the background lane.
// Steps: As arrival_binomial. Receives and the forwarding of data do not wait for the arrival of the process.
// Cost: r = ceil(log2 P) (alpha + N beta) for P ranks and N bytes. Receivers late by up to D: max(D, r), then a copy.
// Operands: none.
// Buffers: N of scratch, except at the root.
// Source: BSBN in Proficz 2020 (Cluster Computing 23), section 4.1, for a broadcast.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::bcast {

Schedule background_binomial(const Instance& instance, Rank me) {
  return bcast_tree(instance, me, Placing::early_near, Lane::background);
}

}  // namespace latecomer::core::algorithms::bcast

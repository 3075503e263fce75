// SPDX-License-Identifier: BSD-3-Clause
// bcast/arrival_linear. The root sends in the order of arrival.
// Steps: The root sends the vector to all other ranks, in the order of their arrival.
// Cost: r = (P-1) (alpha + N beta) for P ranks and N bytes. One receiver late by D: max(D + alpha + N beta, r).
// Operands: none.
// Buffers: none.
// Source: SLIN in Proficz 2020 (Cluster Computing 23), section 4.1, for a broadcast.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::bcast {

Schedule arrival_linear(const Instance& instance, Rank me) {
  return list_from_root(instance, me, instance.order, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::bcast

// SPDX-License-Identifier: BSD-3-Clause
// scatter/slin. The sorted linear scatter.
// Steps: As linear, in the order of arrival.
// Cost: r = (P-1) (alpha + b beta) for P ranks and blocks of b bytes. One receiver late by D: max(D + alpha + b beta,
// r).
// Operands: none.
// Buffers: none.
// Source: SLIN in Proficz 2020 (Cluster Computing 23), section 4.1.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::scatter {

Schedule slin(const Instance& instance, Rank me) {
  return list_from_root(instance, me, instance.order, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::scatter

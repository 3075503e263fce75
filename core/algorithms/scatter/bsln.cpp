// SPDX-License-Identifier: BSD-3-Clause
// scatter/bsln. The background sorted linear scatter.
// Steps: As slin. A receive may complete before its process arrives. The process then copies its block.
// Cost: r = (P-1) (alpha + b beta) for P ranks and blocks of b bytes. One receiver late by D: max(D, r).
// Operands: none.
// Buffers: b of scratch, except at the root.
// Source: BSLN in Proficz 2020 (Cluster Computing 23), section 4.1.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::scatter {

Schedule bsln(const Instance& instance, Rank me) {
  return list_from_root(instance, me, instance.order, Lane::background);
}

}  // namespace latecomer::core::algorithms::scatter

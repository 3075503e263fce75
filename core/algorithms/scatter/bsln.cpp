// SPDX-License-Identifier: BSD-3-Clause
// scatter/bsln, background sorted linear. Steps: as slin; a receive may be complete before its process arrives, which
// then takes its block. Cost: (P-1) (alpha + b beta); one receiver late by D: max(D, that). Buffers: b of scratch,
// except at the root. Operands: none. Source: paper 001, section 4.1 (BSLN).
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::scatter {

Schedule bsln(const Instance& instance, Rank me) {
  return list_from_root(instance, me, instance.order, Lane::background);
}

}  // namespace latecomer::core::algorithms::scatter

// SPDX-License-Identifier: BSD-3-Clause
// scatter/slin, sorted linear. Steps: as linear, in the order of arrival. Cost: (P-1) (alpha + b beta); one receiver
// late by D: max(D + alpha + b beta, that). Buffers: none. Operands: none. Source: paper 001, section 4.1 (SLIN).
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::scatter {

Schedule slin(const Instance& instance, Rank me) {
  return list_from_root(instance, me, instance.order, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::scatter

// SPDX-License-Identifier: BSD-3-Clause
// bcast/arrival_linear. Steps: the root sends all to everybody, in the order of arrival. Cost: (P-1) (alpha + N beta);
// one receiver late by D: max(D + alpha + N beta, that). Buffers: none. Operands: none. Source: paper 001, section 4.1
// (SLIN), for a broadcast.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::bcast {

Schedule arrival_linear(const Instance& instance, Rank me) {
  return list_from_root(instance, me, instance.order, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::bcast

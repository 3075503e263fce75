// SPDX-License-Identifier: BSD-3-Clause
// gather/bsls, background sorted linear with synchronisation. Steps: as sls; the root's part does not wait for the
// root, which then takes the blocks. Cost: alpha + (P-1) (2 alpha + b beta); root late by D: max(D, that), then local
// copies. Buffers: P b of scratch at the root. Operands: none. Source: paper 001, section 4.2 (BSLS).
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::gather {

Schedule bsls(const Instance& instance, Rank me) {
  return gather_synchronised(instance, me, instance.order, Lane::background);
}

}  // namespace latecomer::core::algorithms::gather

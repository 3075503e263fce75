// SPDX-License-Identifier: BSD-3-Clause
// gather/bsls. The background sorted linear gather with synchronization.
// Steps: As sls. The root's messages do not wait for the arrival of the root. The root then copies the blocks.
// Cost: r = alpha + (P-1) (2 alpha + b beta) for P ranks and blocks of b bytes. Root late by D: max(D, r), then local
// copies.
// Operands: none.
// Buffers: P b of scratch at the root.
// Source: BSLS in Proficz 2020 (Cluster Computing 23), section 4.2.
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::gather {

Schedule bsls(const Instance& instance, Rank me) {
  return gather_synchronised(instance, me, instance.order, Lane::background);
}

}  // namespace latecomer::core::algorithms::gather

// SPDX-License-Identifier: BSD-3-Clause
// gather/sls, sorted linear with synchronisation. Steps: as linear_sync, in the order of arrival.
// Cost: alpha + (P-1) (2 alpha + b beta). Buffers: none. Operands: none. Source: paper 001, section 4.2 (SLS).
#include "core/algorithms/blocks.hpp"

namespace latecomer::core::algorithms::gather {

Schedule sls(const Instance& instance, Rank me) {
  return gather_synchronised(instance, me, instance.order, Lane::foreground);
}

}  // namespace latecomer::core::algorithms::gather

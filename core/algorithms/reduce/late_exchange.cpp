// SPDX-License-Identifier: BSD-3-Clause
// reduce/late_exchange, an exchange that is planned for the forecast arrival times.
// Steps: ranks that arrive early, never the root, own the segments. They add up the contributions of all ranks but the
// root. The sum of a segment goes to the root as soon as it is complete.
// Cost: about N beta + 2 (alpha + N/S beta) after the last arrival, for any number of late ranks. N: bytes of the
// vector, S: segments.
// Operands: added by arrival, so for commutative operators only; the association depends on the pattern.
// Buffers: N and 9 segments of scratch.
// Source: this project; docs/results/late_exchange.md.
#include "core/algorithms/exchange/carry_out.hpp"

namespace latecomer::core::algorithms::reduce {

Schedule late_exchange(const Instance& instance, Rank me) {
  return exchange::carry_out(instance, me, {.sink = instance.call.root});
}

}  // namespace latecomer::core::algorithms::reduce

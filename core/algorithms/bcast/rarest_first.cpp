// SPDX-License-Identifier: BSD-3-Clause
// bcast/rarest_first, a broadcast that is planned for the forecast arrival times.
// Steps: time is cut into slots of one segment. In each slot every rank that has segments sends the one with the fewest
// copies to a rank that lacks it. A late rank receives from its arrival on.
// Cost: about N beta + log2 P messages; to a receiver that is later than that: N beta after its arrival. N: bytes of
// the vector.
// Operands: none, no reduction.
// Buffers: no scratch.
// Source: this project; docs/results/late_exchange.md.
#include "core/algorithms/exchange/carry_out.hpp"

namespace latecomer::core::algorithms::bcast {

Schedule rarest_first(const Instance& instance, Rank me) {
  return exchange::carry_out(instance, me, {.source = instance.call.root});
}

}  // namespace latecomer::core::algorithms::bcast

// SPDX-License-Identifier: BSD-3-Clause
// allreduce/late_exchange, an exchange that is planned for the forecast arrival times.
// Steps: ranks that arrive early own the segments. Each rank sends its contributions to the owners, which add them up.
// After the last arrival only the late rank's contributions are missing: it sends them one segment after the other. A
// final segment spreads at once through every free port, the segment with the fewest copies first.
// Cost: one late rank: about N beta and log2 P messages after its arrival. Balanced: 2 (P-1)/P N beta + (P-1)/P N gamma
// and log2 P messages. N: bytes of the vector.
// Operands: added by arrival, so for commutative operators only; the association depends on the pattern.
// Buffers: 9 segments of scratch, at least 2 segments, at most the vector.
// Source: this project; docs/results/late_exchange.md.
#include "core/algorithms/exchange/carry_out.hpp"

namespace latecomer::core::algorithms::allreduce {

Schedule late_exchange(const Instance& instance, Rank me) { return exchange::carry_out(instance, me, {}); }

}  // namespace latecomer::core::algorithms::allreduce

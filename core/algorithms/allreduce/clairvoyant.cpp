// SPDX-License-Identifier: BSD-3-Clause
// allreduce/clairvoyant. Clairvoyant's rounds without a root.
// Steps: Time is cut into rounds of one segment. In each round, ranks that have arrived combine partial results of the
// same segment. A finished segment spreads in the same rounds through free senders and receivers, the segment with the
// fewest copies first.
// Cost: balanced about 2 (P-1)/P N beta for P ranks and N bytes. One rank late: about N beta and a few rounds after it.
// Operands: added by arrival, so for commutative operators only. The association depends on the pattern.
// Buffers: 2 segments of scratch.
// Source: future work of Proficz and Ocetkiewicz 2021, section 7; docs/explanation/schedules.md.
#include "core/algorithms/clairvoyant/walk.hpp"

namespace latecomer::core::algorithms::allreduce {

Schedule clairvoyant(const Instance& instance, Rank me) { return core::clairvoyant::schedule_from_plan(instance, me); }

}  // namespace latecomer::core::algorithms::allreduce

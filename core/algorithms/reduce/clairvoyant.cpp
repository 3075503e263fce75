// SPDX-License-Identifier: BSD-3-Clause
// reduce/clairvoyant. A reduce that is planned for the forecast arrival times.
// Steps: Time is cut into rounds of one segment. In each round, every rank that has arrived receives the lowest segment
// that it can combine. The root, or the first rank before the root arrives, is served first. So early ranks hold few
// segments when late ranks arrive.
// Cost: balanced about (log2 P + S) (alpha + N/S (beta + gamma)) for P ranks, N bytes and S segments. One rank late:
// about S of these rounds after it. Planning takes P S steps.
// Operands: added by arrival, so for commutative operators only. The association depends on the pattern.
// Buffers: N and 2 segments of scratch.
// Source: Proficz and Ocetkiewicz 2021 (the corrected algorithm), sections 4 and 5.
#include "core/algorithms/clairvoyant/walk.hpp"

namespace latecomer::core::algorithms::reduce {

Schedule clairvoyant(const Instance& instance, Rank me) { return core::clairvoyant::schedule_from_plan(instance, me); }

}  // namespace latecomer::core::algorithms::reduce

// SPDX-License-Identifier: BSD-3-Clause
// reduce/clairvoyant. Steps: in rounds of the time of one segment; in each, whoever has arrived receives the lowest
// segment that it can combine, the root (or, until it comes, the first there) first, so that what the early ranks have
// is small when the late ones come. Cost: about (log2 P + S) (alpha + N/S (beta + gamma)), balanced; one rank late:
// about S of these rounds after it. Operands: by arrival, so commutative only and dependent on the pattern. Buffers: N
// and 2 segments of scratch. The schedule is computed from the pattern, P S steps
// (docs/explanation/schedules.md). Source: paper
// 000 (corrected Clairvoyant), sections 4 and 5; ALGORITHMS 3.
#include "core/algorithms/clairvoyant/walk.hpp"

namespace latecomer::core::algorithms::reduce {

Schedule clairvoyant(const Instance& instance, Rank me) { return core::clairvoyant::walk(instance, me); }

}  // namespace latecomer::core::algorithms::reduce

// SPDX-License-Identifier: BSD-3-Clause
// allreduce/clairvoyant. Steps: Clairvoyant's rounds without a root: partial results are combined wherever two of those
// who have arrived hold the same segment; a finished segment spreads in the same rounds, by the receivers and senders
// that combining leaves free, the one that the fewest have first. Cost: balanced about 2 (P-1)/P N beta; one rank late:
// about N beta and a few rounds after it. Operands: by arrival, so commutative only and dependent on the pattern.
// Buffers: 2 segments of scratch. Source: paper 000, section 7 names it as future work;
// rules in docs/explanation/schedules.md.
#include "core/algorithms/clairvoyant/walk.hpp"

namespace latecomer::core::algorithms::allreduce {

Schedule clairvoyant(const Instance& instance, Rank me) { return core::clairvoyant::walk(instance, me); }

}  // namespace latecomer::core::algorithms::allreduce

// SPDX-License-Identifier: BSD-3-Clause
// allreduce/slt, sorted linear tree. Steps: the linear tree over the ranks sorted by arrival, so that the
// latest is the last in the pipeline and finds everything else reduced when it comes; a finished segment
// goes on around the ring, from the last position to the first.
// Cost: (S + 2P - 3) (alpha + N/S (beta + gamma)); one rank late by D: about D + (S + P - 1) steps.
// Operands: sorted by arrival, so commutative only and dependent on the pattern.
// Source: paper 002 (Proficz, J Supercomput 2018), section 4.1; the way around the ring: ALGORITHMS 1.
#include "core/algorithms/pipeline.hpp"

namespace latecomer::core::algorithms::allreduce {

Schedule slt(const Instance& instance, Rank me) { return chain_walk(instance, me, instance.order); }

}  // namespace latecomer::core::algorithms::allreduce

// SPDX-License-Identifier: BSD-3-Clause
// From a Clairvoyant plan to one rank's schedule.
#pragma once

#include <span>

#include "core/algorithms/algorithm.hpp"

namespace latecomer::core::clairvoyant {

/// Segments where the caller leaves the number open: the best for a pipeline of log2 P + S steps of one segment.
int segments_for(const Call& call, const Network& network);

/// Rows of a plan, in an order in which every rank can take its own steps.
enum Column { kRound, kSrc, kDst, kSegment, kKind, kColumns };
/// A share: the sender gives away its part of the sum. Finished: a copy of the result. Both: the two ranks exchange
/// their shares in this round, and both add.
enum Kind { kShare, kFinished, kBoth };
/// The schedule of rank `me` from such rows, which must outlive it.
Schedule schedule_from_rows(const Instance& instance, Rank me, std::span<const int> rows, int segments);

/// The schedule of rank `me`: of a reduce, or of an allreduce (its own plan, see plan_everywhere). In lockstep every
/// round waits for the rank's previous one (the papers' loops); with overlap the data alone decide.
Schedule schedule_from_plan(const Instance& instance, Rank me);

}  // namespace latecomer::core::clairvoyant

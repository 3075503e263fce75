// SPDX-License-Identifier: BSD-3-Clause
// From a Clairvoyant plan to one rank's schedule.
#pragma once

#include <algorithm>
#include <span>

#include "core/algorithms/algorithm.hpp"

namespace latecomer::core::clairvoyant {

/// Segments where the caller leaves the number open: the best for a pipeline of log2 P + S steps of one segment.
int segments_for(const Call& call, const Network& network);

/// Rows of a plan, in an order in which every rank can do its own.
enum Column { kRound, kSrc, kDst, kSegment, kFinished, kLands, kHeldBack, kColumns };

/// Where a rank keeps pace: receives that it has posted ahead, so that what waits for its receiver finds its own there.
/// Balances waiting and memory: with fewer, messages wait for their receivers; with more, contributions take more room.
inline constexpr int kPosted = 8;
/// Contributions for which it has room before they are added; in few segments they would take more than the vector.
inline int rooms_for(int segments) { return std::clamp(segments, 2, kPosted + 1); }

/// The schedule of rank `me` from such rows, which must outlive it. `paced`: a
/// send waits for whatever should have landed before its round, so that it does not get ahead of others at its
/// receiver. `in_flight`: so many sends at a time. `ordered`: contributions, which come from their ranks and from
/// nobody else, are added in the same way whenever they come (algorithms/ordered.hpp); of an allreduce.
Schedule follow(const Instance& instance, Rank me, std::span<const int> rows, int segments, bool paced,
                int in_flight = 1, bool ordered = false);

/// The schedule of rank `me`: of a reduce, or of an allreduce (its own plan, see plan_everywhere). In lockstep every
/// round waits for the rank's previous one (the papers' loops); with overlap the data alone decide.
Schedule walk(const Instance& instance, Rank me);

}  // namespace latecomer::core::clairvoyant

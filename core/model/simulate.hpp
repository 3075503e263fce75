// SPDX-License-Identifier: BSD-3-Clause
// The model: runs schedules in virtual time. Event-driven and deterministic; schedules are pulled
// lazily, so memory does not grow with the number of messages.
//
// A message of m bytes keeps a send port and a receive port busy for alpha + m beta, then is in flight
// for a latency that occupies nothing. A port serves transfers first in, first out: a rendezvous counts
// from the moment both sides are ready, an eager message from the moment it is posted, which is after its
// overhead; an unmatched message blocks nothing. Reductions, copies and the per-message overhead share one processor
// per rank.
#pragma once

#include <vector>

#include "core/algorithms/algorithm.hpp"

namespace latecomer::core {

struct Simulation {
  std::vector<Nanoseconds> finish;  ///< exit time per rank, same zero as the arrivals
  std::int64_t messages = 0;
  Nanoseconds run_time = 0;    ///< first arrival to last exit
  Nanoseconds after_last = 0;  ///< last arrival to last exit
  double mean_elapsed = 0;     ///< mean over ranks of exit - arrival
};

/// Runs `algorithm` on all ranks of `instance` under `network`, with the arrivals of `arrivals` (which may
/// differ from the pattern the schedule was built for). An error means that the schedule cannot finish.
Result<Simulation> simulate(const Algorithm& algorithm, const Instance& instance, const Network& network,
                            const Pattern& arrivals, int lookahead = kLookahead);

}  // namespace latecomer::core

// SPDX-License-Identifier: BSD-3-Clause
// Replays recorded calls under a change, such as one rank on time, and says how long the run then takes.
//
// The model of dependencies: a rank arrives at its next call when it has left the previous one and its own interval has
// passed. It leaves a call after the arrival that it waits for (profiles/record/waiting.hpp), plus the time from that
// arrival to its exit in the record. Messages between the calls are part of the intervals. Without a change, the replay
// gives the recorded times. The first interval of each rank, the set-up, begins at the earliest arrival of the record:
// no rank waits before that time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/collective/collective.hpp"

namespace latecomer::profiles {

struct ReplayCall {
  core::Collective op = core::Collective::barrier;
  std::int32_t site = 0;
  core::Rank root = -1;
  bool blocking = true;   ///< false: the rank leaves the call at once, and its later wait is part of its interval
  std::int64_t part = 0;  ///< calls of different parts of the record do not follow each other
  std::span<const core::Rank> ranks;
  std::span<const core::Nanoseconds> arrivals, exits;  ///< [ranks]; exit -1: unknown
};

struct Change {
  enum class Kind {
    none,
    on_time,     ///< the interval of `rank` before a call of `site` is at most the median of the other ranks'
    equal_work,  ///< the interval of every rank is the mean over the ranks
    no_wait,     ///< no rank waits in a call of `site`: an upper bound for a non-blocking call
    faster,      ///< the time after the awaited arrival is multiplied by `factor`
  } kind = Kind::none;
  std::int32_t site = -1;  ///< -1: every site
  core::Rank rank = -1;
  double factor = 1;
  bool set_up = false;  ///< the change holds only before the first call of a rank
};

class Replay {
 public:
  /// `ranks`: size of MPI_COMM_WORLD. Time and memory: linear in the number of arrivals.
  Replay(std::vector<ReplayCall> calls, int ranks);
  /// The time in ns from the first arrival to the last exit, summed over the parts of the record.
  double time(const Change& change = {}) const;

 private:
  void put_in_order(int ranks);

  std::vector<ReplayCall> calls_;
  int ranks_;
};

}  // namespace latecomer::profiles

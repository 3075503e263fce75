// SPDX-License-Identifier: BSD-3-Clause
// The position of each rank of a job: the call that it is in, now or when a look saw it last. This file must not judge.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "profiles/analysis/frame.hpp"

namespace latecomer::profiles::analysis {

/// One process as its file in shared memory, a copy of that file, or a profile shows it.
struct LiveRank {
  std::string host, output;  ///< `output`: absolute path of the profile, which names the job
  int pid = 0, rank = -1, ranks = 0;
  std::uint64_t started = 0;  ///< start of the process, as in /proc
  std::uint64_t job = 0;      ///< Contribution::job_key
  std::uint64_t communicator = 0, n = 0, site = 0;
  std::int64_t bytes = -1, since = 0, message = 0;
  int root = -1, comm_size = 0, op = 0, inside = 0;
  std::uint64_t message_site = 0;           ///< of the call that is no collective; 0: not known
  int message_call = -1;                    ///< in kMpiCalls; negative: not known
  int message_peer = -1, message_tag = -1;  ///< as in LiveMessage
  char state = '?';                         ///< as in /proc; 'X': the process is gone; '?': not known
  /// The state when the process was last seen alive. 'X': the process was gone while others of the job lived.
  char alive = '?';
  /// CLOCK_MONOTONIC of its host when the process was last seen alive, as `since` and `message`. 0: never.
  std::int64_t looked = 0;
  std::uint64_t copy = 0;     ///< number of the copy; 0: read directly
  double copy_age_s = 0;      ///< age of the copy, by the clocks of both hosts
  std::int64_t watched = -1;  ///< time over which looks have seen the rank in one call; -1: there was one look only
  bool moves = false;         ///< the rank was in different calls in two looks
  bool stale = false;         ///< two looks have seen the same copy, so the present position is unknown
  std::vector<std::pair<std::uint64_t, NamedFrame>> frames;  ///< by site, without names

  bool same_place(const LiveRank& o) const {
    return communicator == o.communicator && n == o.n && inside == o.inside && message == o.message;
  }
  bool same_process(const LiveRank& o) const { return rank == o.rank && pid == o.pid && started == o.started; }
  /// Whether the rank is in a collective or in another MPI call that waits.
  bool waits() const { return inside == 1 || message != 0; }
};

/// The ranks of one job with the places of their calls.
struct LiveState {
  std::vector<LiveRank> ranks;                 ///< by rank
  std::map<std::uint64_t, NamedFrame> places;  ///< by site, with names where they are known
  bool ended = false;                          ///< the state is the last one of a job, and not that of this moment
};

/// A rank stands still if looks have seen it in the same call for this time. Chosen: longer than most calls take.
inline constexpr std::int64_t kStandsStill_ns = 1'000'000'000;

}  // namespace latecomer::profiles::analysis

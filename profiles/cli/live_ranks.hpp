// SPDX-License-Identifier: BSD-3-Clause
// The present state of a job's ranks: read from shared memory of this host, or from the copies that `latecomer relay`
// writes on other hosts. This file must not judge what it reads.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "profiles/record/live.hpp"

namespace latecomer::cli {

/// One process as its file, or a copy of its file, shows it.
struct LiveRank {
  std::string host, output;  ///< `output`: absolute path of the profile, which names the job
  int pid = 0, rank = -1, ranks = 0;
  std::uint64_t started = 0;  ///< of the process
  std::uint64_t job = 0;      ///< Contribution::job_key
  std::uint64_t communicator = 0, n = 0, site = 0;
  std::int64_t bytes = -1, since = 0, message = 0;
  int root = -1, comm_size = 0, op = 0, inside = 0;
  char state = '?';          ///< as in /proc; 'X': the process is gone
  std::int64_t looked = 0;   ///< CLOCK_MONOTONIC of its host when the state was read, as `since` and `message`
  std::uint64_t copy = 0;    ///< number of the copy; 0: read directly
  double copy_age_s = 0;     ///< of the copy, by the clocks of both hosts
  std::int64_t watched = 0;  ///< time between the two looks
  bool moves = false;        ///< its place differs between two looks
  bool stale = false;        ///< two looks have seen the same copy, so nothing is known of the present
  std::vector<std::pair<std::uint64_t, nlohmann::ordered_json>> frames;  ///< by site

  bool same_place(const LiveRank& o) const {
    return communicator == o.communicator && n == o.n && inside == o.inside && message == o.message;
  }
};

/// All processes of this host that live under latecomer, by rank. Of a process that was killed, the last state.
std::vector<LiveRank> live_ranks_here();

/// The state of a job's ranks, by rank. `output`: the absolute path of its profile. A rank that this host shows is not
/// taken from a copy.
std::vector<LiveRank> live_ranks(const std::string& output);

/// Two looks at a job's ranks. The second sets `moves` and `stale`. It waits up to 3 s for newer copies from the hosts
/// that were still writing some.
std::vector<LiveRank> live_ranks_twice(const std::string& output, double seconds);

/// The absolute path of the profile that names a job. "": the only job that this host shows. Throws BadUsage if it is
/// not clear which job is meant.
std::string live_job(const std::string& named);

}  // namespace latecomer::cli

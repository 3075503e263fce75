// SPDX-License-Identifier: BSD-3-Clause
// The present state of a job's ranks: read from shared memory of this host, or from the copies that `latecomer relay`
// writes on other hosts. This file must not judge the states that it reads.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "profiles/analysis/live_rank.hpp"

namespace latecomer::profiles {

using analysis::LiveRank;
using analysis::LiveState;

/// All processes of this host that live under latecomer, by rank. Of a process that was killed, the last state.
std::vector<LiveRank> live_ranks_here();

/// The processes of one job on this host, looked at again and again. Killed jobs leave their files for a day; a file of
/// another job is read once, because its name belongs to one process.
class RanksOfJob {
 public:
  explicit RanksOfJob(std::uint64_t job) : job_(job) {}
  /// As live_ranks_here().
  std::vector<LiveRank> look();

 private:
  const std::uint64_t job_;
  std::unordered_set<std::string> others_;
};

/// The state of a job's ranks, by rank. `output`: the absolute path of its profile. A rank that this host shows is not
/// taken from a copy.
std::vector<LiveRank> live_ranks(const std::string& output);

/// Two looks at a job's ranks. The second sets `moves` and `stale`. It waits up to 3 s for newer copies from the hosts
/// that were still writing some.
std::vector<LiveRank> live_ranks_twice(const std::string& output, double seconds);

/// Sets `watched`, `moves` and `stale` of the ranks by an earlier look at them.
void compare_looks(const std::vector<LiveRank>& before, std::vector<LiveRank>& now);

/// The ranks with the places of their calls, named.
LiveState with_places(std::vector<LiveRank> ranks);

/// The absolute path of the profile that names a job. "": the only job that this host shows. Throws BadUsage if it is
/// not clear which job is meant.
std::string live_job(const std::string& named);

}  // namespace latecomer::profiles

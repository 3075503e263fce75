// SPDX-License-Identifier: BSD-3-Clause
// Finds out which ranks of this job are alive, and limits the waits at the end of a job. A wait for a living rank has
// no limit, because the rank may be writing its results. A dead rank cannot arrive.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/types.hpp"
#include "profiles/base/process.hpp"
#include "shim/patience.hpp"

namespace latecomer::shim {

/// Keeps those processes of `all` that `mine` can watch. Local. Opens no process yet.
void watch_ranks(const profiles::ProcessId& mine, const std::vector<profiles::ProcessId>& all);

/// Whether a watched rank has ended. A rank on another kernel counts as alive: its own host notices its death, and the
/// launcher ends the job. The first call takes a few microseconds per rank, later calls one system call per rank.
bool rank_died();

/// A wait for the other ranks at the end of a job: `while (!done) if (!wait.again()) give up;`
class RankWait {
 public:
  /// Between two looks, a rank sleeps for a time that grows (`naps`), only yields its core, or looks again at once.
  enum class Between { naps, yields, nothing };
  explicit RankWait(Between between = Between::naps) : between_(between) {}
  /// Waits a moment. Returns false once a rank has died and the other ranks had time to end.
  bool again();
  /// Returns true once, when the wait has become long.
  bool became_long();

 private:
  Between between_;
  Patience patience_{true};
  core::Nanoseconds began_ = 0, next_look_ = 0, give_up_ = 0;
  bool long_ = false;
};

}  // namespace latecomer::shim

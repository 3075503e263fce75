// SPDX-License-Identifier: BSD-3-Clause
// Which ranks of this job are still alive, and the waits at the end of a job that depend on it. A rank that is alive is
// waited for without a limit: it may be writing its results. A rank that has died cannot come any more.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/types.hpp"
#include "shim/patience.hpp"

namespace latecomer::shim {

/// A process as others on the same kernel and in the same pid namespace can find it.
struct ProcessId {
  std::uint64_t kernel = 0, pid_namespace = 0;
  std::uint64_t start = 0;  ///< in the kernel's ticks: a pid that is used again has another; 0: not known
  std::int32_t pid = 0;
};

/// `kernel`: the same on all processes of one kernel.
ProcessId this_process(std::uint64_t kernel);

/// Keeps those processes of `all` that `mine` can watch. Local; no process is opened yet.
void watch_ranks(const ProcessId& mine, const std::vector<ProcessId>& all);

/// Whether a watched rank has ended. A rank of another kernel counts as alive: its own host sees it, and the launcher
/// ends the job. A few microseconds a rank at the first call, one system call later.
bool rank_died();

/// One wait for the other ranks at the end of a job: `while (!done) if (!wait.again()) give up;`
class RankWait {
 public:
  /// Waits a moment, courteously. False once a rank has died and the others had time to end all the same.
  bool again();
  /// True once in the life of this wait, when it has become a long one.
  bool became_long();

 private:
  Patience patience_{true};
  core::Nanoseconds began_ = 0, next_look_ = 0, give_up_ = 0;
  bool long_ = false;
};

}  // namespace latecomer::shim

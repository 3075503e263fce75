// SPDX-License-Identifier: BSD-3-Clause
// The identity of this process: threads, process id, start time. Written at the start only, except for `edge_said`.
#pragma once

#include <atomic>

#include "shim/clock.hpp"

namespace latecomer::shim {

struct ThisProcess {
  bool threads = false;     ///< MPI_THREAD_MULTIPLE, or unknown
  int pid = 0;              ///< of the process that started MPI; a forked child has another
  int thread = 0;           ///< the thread that started MPI
  Nanoseconds entered = 0;  ///< the time at which MPI_Init began; 0: unknown
  Nanoseconds started = 0;
  std::atomic<bool> edge_said{false};  ///< since the last call that an algorithm may serve
};

extern ThisProcess* job_process_instance __attribute__((visibility("hidden")));
inline ThisProcess& job_process() { return *job_process_instance; }

/// True between the end of MPI_Init and the teardown, in programs that latecomer observes.
extern std::atomic<bool> active;

// A step in the life of a job that a call may set off. shim/job defines it.

/// Starts local observation at an intercepted call if latecomer did not see MPI start (another tool keeps MPI_Init to
/// itself). Returns false if MPI is not running or latecomer is disabled.
bool start_late() noexcept;

}  // namespace latecomer::shim

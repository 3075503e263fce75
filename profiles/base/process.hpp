// SPDX-License-Identifier: BSD-3-Clause
// Identifies processes, so that another process can tell later whether they have ended. It must not judge jobs.
#pragma once

#include <cstdint>

namespace latecomer::profiles {

/// A process as /proc shows it.
struct ProcessState {
  bool exists = false;
  bool ended = true;          ///< it does not exist, or waits for its parent and has no thread left
  char state = '?';           ///< 'R': runs or waits for a core; 'S', 'D': asleep; 'T', 't': stopped; 'Z': ended
  std::uint64_t started = 0;  ///< in clock ticks
};
ProcessState process_state(int pid);

/// A process, unlike any other of its kernel. 0 in `kernel` or `pid_namespace`: /proc did not tell.
struct ProcessId {
  std::uint64_t kernel = 0;         ///< hash of the boot's id
  std::uint64_t pid_namespace = 0;  ///< number of the namespace in which `pid` counts
  std::uint64_t started = 0;        ///< in clock ticks, which tells a reused pid apart
  std::int32_t pid = 0;
  bool operator==(const ProcessId&) const = default;
};

/// The process `pid` of the caller's namespace.
ProcessId process_id(int pid);
ProcessId this_process();

/// `unknown`: a process of another host, boot or container. Treat it as running.
enum class Life { ended, runs, unknown };
Life life_of(const ProcessId& process);

}  // namespace latecomer::profiles

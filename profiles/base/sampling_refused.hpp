// SPDX-License-Identifier: BSD-3-Clause
// Why a kernel gives no samples of the running code, and what would allow them.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

namespace latecomer::profiles {

/// `error`: of perf_event_open. `paranoid`: of /proc/sys/kernel/perf_event_paranoid; less than -1: not known.
inline std::string sampling_refused(int error, long paranoid) {
  constexpr long kAllowed = 2;  // samples of a process's own threads in user mode
  const bool forbidden = error == EACCES || error == EPERM;
  if (forbidden && paranoid > kAllowed)
    return "kernel.perf_event_paranoid is " + std::to_string(paranoid) + ", and samples need 2 or less (`sysctl`)";
  if (forbidden)
    return "a filter of system calls forbids `perf_event_open`, as that of Docker does "
           "(`docker run --cap-add PERFMON`)";
  if (error == ENOSYS) return "this kernel has no `perf_event_open`";
  return std::string("`perf_event_open` fails: ") + std::strerror(error);
}

/// `error`: of mmap.
inline std::string sampling_no_ring(int error) {
  if (error == EPERM)
    return "the kernel's limit of memory for rings of samples is used up: kernel.perf_event_mlock_kb (`sysctl`)";
  return std::string("there is no memory for samples: ") + std::strerror(error);
}

}  // namespace latecomer::profiles

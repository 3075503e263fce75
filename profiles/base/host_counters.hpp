// SPDX-License-Identifier: BSD-3-Clause
// What the kernel counts for a whole host and for the control group of this process. It must not judge the figures.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace latecomer::profiles {

/// Sums over the cores, in nanoseconds. Empty: the kernel does not tell, or not of this span.
struct HostTimes {
  std::optional<std::int64_t> busy;       ///< processor time of all processes, without interrupts
  std::optional<std::int64_t> steal;      ///< in which a hypervisor gave the cores of this host to others
  std::optional<std::int64_t> pressure;   ///< in which some process waited for a core; not a sum over the cores
  std::optional<std::int64_t> throttled;  ///< in which the group, or one above it, had used up its quota
};

class HostCounters {
 public:
  /// Reads the counters for the first time. `root`: a folder with the files of /proc and /sys, "" for the real ones.
  explicit HostCounters(const std::string& root = "");
  /// What has been added to the counters since then. Allocates no memory.
  HostTimes since_start() const;

 private:
  enum Field { user, nice, system, idle, iowait, irq, softirq, steal, kFields };
  using CpuTimes = std::array<std::int64_t, kFields>;
  /// A group with counters of its quota: that of this process, or one that contains it.
  struct Group {
    std::string file;
    std::int64_t at_start = 0;
  };
  std::optional<CpuTimes> read_times() const;
  void find_groups(const std::string& root);

  std::string stat_, pressure_;
  std::optional<CpuTimes> times_at_start_;
  std::optional<std::int64_t> pressure_at_start_;
  std::vector<Group> groups_;
};

}  // namespace latecomer::profiles

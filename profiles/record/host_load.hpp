// SPDX-License-Identifier: BSD-3-Clause
// What ran on a host beside the job. One process per host measures it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "core/base/types.hpp"
#include "profiles/base/share.hpp"

namespace latecomer::profiles {

using core::Nanoseconds;

/// From the end of MPI_Init to the end of the job or the last snapshot. Empty values are not known.
struct HostLoad {
  std::string host;
  std::int32_t ranks = 0;   ///< of the job, on this host's kernel
  std::int32_t cores = 0;   ///< that are online
  std::int32_t usable = 0;  ///< those of them that some rank may use
  Nanoseconds span = 0;
  std::optional<Nanoseconds> busy{}, job{};                     ///< processor time of all processes, and of the ranks
  std::optional<Nanoseconds> steal{}, pressure{}, throttled{};  ///< as HostTimes
  static auto members(auto& h) {
    return std::tie(h.host, h.ranks, h.cores, h.usable, h.span, h.busy, h.job, h.steal, h.pressure, h.throttled);
  }
  /// Processor time of the processes that are no ranks of the job. Not known where the ranks had more than all
  /// processes, as in a container whose /proc/stat is not the kernel's.
  std::optional<Nanoseconds> others() const {
    if (!busy || !job || !Share::of(static_cast<double>(*job), static_cast<double>(*busy)).known()) return {};
    return std::max<Nanoseconds>(0, *busy - *job);
  }
  /// The standard error of others(). The kernel asks at each tick who runs on a core. A tick is at most this long.
  double error() const {
    constexpr double kTick = 10'000'000;
    return std::sqrt(kTick * cores * static_cast<double>(std::max<Nanoseconds>(0, span))) / 2;
  }
};

}  // namespace latecomer::profiles

// SPDX-License-Identifier: BSD-3-Clause
// The time that latecomer takes from a process, by cause.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "core/base/types.hpp"

namespace latecomer::profiles {

enum class CostOf : std::uint8_t {
  start,     ///< in MPI_Init, and at the first calls from a site
  log,       ///< calls that are logged
  exchange,  ///< the exchange of logs, and what ranks agree on
  files,     ///< snapshots
  causes,    ///< readings of the kernel's counters
  messages,  ///< the timing of message calls
  samples,   ///< samples of the running code, by what one was measured to take
  count,     ///< calls that are only counted, and the begins of their epochs
};
inline constexpr std::size_t kCosts = 8;
inline constexpr std::array<std::string_view, kCosts> kCostNames = {"start",  "log",      "exchange", "files",
                                                                    "causes", "messages", "samples",  "count"};
struct Costs {
  std::array<core::Nanoseconds, kCosts> of{};
  core::Nanoseconds sum() const { return std::accumulate(of.begin(), of.end(), core::Nanoseconds{0}); }
};

}  // namespace latecomer::profiles

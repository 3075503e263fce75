// SPDX-License-Identifier: BSD-3-Clause
// Tells which calls of a record follow each other.
#include "profiles/record/recorded_calls.hpp"

#include <algorithm>

namespace latecomer::profiles {

std::int64_t part_of(const RecordedArrivals& record, const RecordedCall& call) {
  const auto stride = std::max<std::int64_t>(1, static_cast<std::int64_t>(record.stride));
  if (stride == 1) return 0;
  if (record.sample > 0) return static_cast<std::int64_t>(call.number / record.sample) / stride;
  // Times start somewhere in the first window, so one window more brings each kept window into its own span of `stride`
  // windows.
  const auto window = std::max<std::int64_t>(1, static_cast<std::int64_t>(record.window_ns));
  return (*std::ranges::min_element(call.arrivals) + window) / window / stride;
}

}  // namespace latecomer::profiles

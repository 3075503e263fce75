// SPDX-License-Identifier: BSD-3-Clause
// Differences of patterns and of sizes that are large enough to act on.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "core/base/types.hpp"

namespace latecomer::core {

/// Whether the pattern is another one: a rank has moved by half of the spread. Less is noise, and would begin every
/// trial anew. Chosen, not measured.
inline bool moved(std::span<const Nanoseconds> before, std::span<const Nanoseconds> now) {
  if (before.size() != now.size()) return true;
  Nanoseconds spread = 0, most = 0;
  for (std::size_t r = 0; r < now.size(); ++r)
    spread = std::max(spread, before[r]), most = std::max(most, std::abs(before[r] - now[r]));
  return 2 * most > spread;
}

/// Whether the sizes are others: more than a tenth of all bytes has moved. Less does not make another tree worth
/// announcing. Chosen, not measured.
inline bool resized(std::span<const Bytes> before, std::span<const Bytes> now) {
  if (before.size() != now.size()) return true;
  Bytes all = 0, elsewhere = 0;
  for (std::size_t r = 0; r < now.size(); ++r) all += before[r], elsewhere += std::abs(before[r] - now[r]);
  return 10 * elsewhere > all;
}

}  // namespace latecomer::core

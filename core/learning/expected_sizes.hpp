// SPDX-License-Identifier: BSD-3-Clause
// The block sizes that the next call probably has, and how often recent calls had others.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/types.hpp"
#include "core/learning/changed.hpp"

namespace latecomer::core {

struct ExpectedSizes {
  /// Derived: `surprises` has 16 bits. With kLeast calls, three must be surprises before sizes count as varying.
  static constexpr int kWindow = 16, kLeast = 4;
  std::vector<Bytes> sizes;     ///< empty: none were seen
  std::vector<Bytes> other;     ///< sizes of the last call if they were a surprise; expected once they come twice
  std::uint16_t surprises = 0;  ///< one bit per call of the last `seen` calls, the latest in the lowest bit
  int seen = 0;
  bool varying = false;  ///< most calls have other sizes than those that a tree would be planned for
  int count_surprises() const { return std::popcount(surprises); }
  void add_call(std::span<const Bytes> now) {
    const bool surprise = !sizes.empty() && resized(sizes, now);
    surprises = static_cast<std::uint16_t>(surprises << 1 | surprise);
    seen = std::min(seen + 1, kWindow);
    // Most recent calls must have the expected sizes before a plan relies on sizes again, so one call changes nothing.
    varying = seen >= kLeast && (varying ? 4 * count_surprises() > seen : 2 * count_surprises() > seen);
    if (!surprise || !resized(other, now)) {
      sizes.assign(now.begin(), now.end());
      other.clear();
    } else {
      other.assign(now.begin(), now.end());
    }
  }
};

}  // namespace latecomer::core

// SPDX-License-Identifier: BSD-3-Clause
// Measured times and block sizes of recent calls.
#include <algorithm>
#include <bit>

#include "core/learning/changed.hpp"
#include "core/learning/learner.hpp"

namespace latecomer::core {

int Learner::ExpectedSizes::missed() const { return std::popcount(surprises); }

void Learner::ExpectedSizes::add(std::span<const Bytes> now) {
  const bool surprise = !sizes.empty() && resized(sizes, now);
  surprises = static_cast<std::uint16_t>(surprises << 1 | surprise);
  seen = std::min(seen + 1, kWindow);
  // Most recent calls must have the expected sizes before a plan relies on sizes again, so one call changes nothing.
  varying = seen >= kLeast && (varying ? 4 * missed() > seen : 2 * missed() > seen);
  if (!surprise || !resized(other, now)) {
    sizes.assign(now.begin(), now.end());
    other.clear();
  } else {
    other.assign(now.begin(), now.end());
  }
}

void Learner::Samples::add(Nanoseconds after, double mean_elapsed) {
  after_last[static_cast<std::size_t>(count % kKept)] = static_cast<float>(after);
  elapsed[static_cast<std::size_t>(count % kKept)] = static_cast<float>(mean_elapsed);
  ++count;
}

void Learner::Samples::add_next(Nanoseconds until) {
  until_next[static_cast<std::size_t>(count_next % kKept)] = static_cast<float>(until);
  ++count_next;
}

double Learner::Samples::median(std::array<float, kKept> values) const {
  const int n = std::min(count, kKept);
  if (n == 0) return -1;
  std::nth_element(values.begin(), values.begin() + n / 2, values.begin() + n);
  return values[static_cast<std::size_t>(n / 2)];
}

}  // namespace latecomer::core

// SPDX-License-Identifier: BSD-3-Clause
// The search for a number of segments. Each algorithm gives its own time as a function of that number.
#pragma once

#include <algorithm>

namespace latecomer::core {

/// The largest number that a policy, a history or a command may ask for. Derived: a pipeline then has fewer than 2^31
/// steps (segments + 2 * ranks) on a billion ranks.
inline constexpr int kMostSegments = 1 << 24;

/// The least number from 1 to `most` whose time is at most `tolerance` times the shortest one. Looks at numbers that
/// differ by a sixteenth. A search, not a formula: where segments become eager the step gets shorter at once.
template <typename Time>
int least_segments(int most, double tolerance, Time time) {
  const auto next = [](int s) { return s + std::max(1, s / 16); };
  double shortest = time(1);
  for (int s = 1; s <= most; s = next(s)) shortest = std::min(shortest, time(s));
  int s = 1;
  while (next(s) <= most && time(s) > tolerance * shortest) s = next(s);
  return s;
}

}  // namespace latecomer::core

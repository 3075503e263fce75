// SPDX-License-Identifier: BSD-3-Clause
// The sequential test between two algorithms whose calls alternate at random. Pure functions of measured times.
#pragma once

#include <span>

namespace latecomer::core {

/// The result of comparing a candidate with the algorithm in use, from the calls so far.
enum class TrialVerdict {
  open,   ///< more calls are needed
  wins,   ///< the candidate is faster by more than kLeastGain
  loses,  ///< the candidate is slower, or not faster by kLeastGain
};

/// The least gain that is worth another algorithm. Medians of a few dozen calls on a busy machine differ by this much
/// without cause.
inline constexpr double kLeastGain = 0.03;

/// The times of one algorithm's calls, newest or oldest first. Any unit. `until_next`: from the last arrival in a call
/// to the last arrival in the next call of the communicator. So it includes the effect of the exits of this call on the
/// arrivals of the next call. The time from exit to exit would count that effect for the next call, which another
/// algorithm serves. May be shorter than `times`.
struct Timed {
  std::span<const float> times, until_next;
};

/// Compares a candidate with the algorithm in use. Both must be measured in the same rota. `most`: after this number of
/// calls of each, the candidate loses if the verdict is still open.
/// Method: Welch's statistic on the logarithms, one-sided, with the critical value of Student's distribution, at every
/// look. A defeat needs less evidence than a victory, because it costs only the gain. docs/explanation/learning.md has
/// the simulated error rates, which the test "judge: error rates" checks.
TrialVerdict judge_candidate(const Timed& candidate, const Timed& in_use, int most);

/// Whether a candidate is faster than another one, so far. Each has at least one call. The mean of `until_next` decides
/// if the means differ by two standard errors, else the mean of `times`. The time until the next call varies more,
/// because it includes the work of the program between the calls. But it shows whether ranks that leave a call early
/// are early in the next call.
bool is_faster(const Timed& candidate, const Timed& other);

}  // namespace latecomer::core

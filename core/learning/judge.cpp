// SPDX-License-Identifier: BSD-3-Clause
// Welch's statistic on logarithms, and the rule that reads it.
#include "core/learning/judge.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/logarithm.hpp"

namespace latecomer::core {
namespace {

struct Sample {
  double mean = 0, variance = 0;
  int count = 0;
};

Sample sample_of(std::span<const float> times) {
  Sample out;
  out.count = static_cast<int>(times.size());
  if (out.count == 0) return out;
  const auto log_of = [](float t) { return logarithm(std::max(1.0, static_cast<double>(t))); };
  for (const float t : times) out.mean += log_of(t);
  out.mean /= out.count;
  for (const float t : times) out.variance += (log_of(t) - out.mean) * (log_of(t) - out.mean);
  out.variance /= std::max(1, out.count - 1);
  return out;
}

/// The critical value of Student's distribution for the quantile z of the normal one (Abramowitz and Stegun 26.7.5).
double critical(double z, double freedom) {
  const double z3 = z * z * z, z5 = z3 * z * z;
  return z + (z3 + z) / (4 * freedom) + (5 * z5 + 16 * z3 + 3 * z) / (96 * freedom * freedom);
}

/// The difference of two means in units of its standard error, and the degrees of freedom of this statistic.
struct Difference {
  double in_errors = 0, freedom = 1;
};

/// The logarithm of y over x, less the margin: positive where x is faster by more than the margin.
Difference difference(const Sample& x, const Sample& y, double margin) {
  // Times are rounded, and few calls may be alike by chance: no deviation counts as less than 0.5%.
  constexpr double kLeastVariance = 0.005 * 0.005;
  const double vx = std::max(x.variance, kLeastVariance) / x.count, vy = std::max(y.variance, kLeastVariance) / y.count,
               v = vx + vy;
  return {(y.mean - x.mean - margin) / std::sqrt(v),
          v * v / (vx * vx / std::max(1, x.count - 1) + vy * vy / std::max(1, y.count - 1))};
}

/// The fewest calls from which a standard deviation is computed.
constexpr int kFewest = 3;

}  // namespace

bool is_faster(const Timed& candidate, const Timed& other) {
  const Sample next_x = sample_of(candidate.until_next), next_y = sample_of(other.until_next);
  if (std::min(next_x.count, next_y.count) >= kFewest)
    if (const double next = difference(next_x, next_y, 0).in_errors; std::abs(next) > 2) return next > 0;
  return sample_of(candidate.times).mean < sample_of(other.times).mean;
}

TrialVerdict judge_candidate(const Timed& candidate, const Timed& in_use, int most) {
  // Simulated error rates: see docs/explanation/learning.md. A smaller quantile decides sooner and errs more often.
  constexpr double kVictory = 2.6, kDefeat = 1.65;
  const Sample x = sample_of(candidate.times), y = sample_of(in_use.times), next_x = sample_of(candidate.until_next),
               next_y = sample_of(in_use.until_next);
  const int count = std::min(x.count, y.count), next_count = std::min(next_x.count, next_y.count);
  const double margin = -logarithm(1 - kLeastGain);
  // Two calls end the trial of a candidate that is far slower: both take a third longer than the slowest call of the
  // algorithm in use.
  constexpr double kFarOff = 1.33;
  if (count >= 2 && std::ranges::min(candidate.times) > kFarOff * static_cast<double>(std::ranges::max(in_use.times)))
    return TrialVerdict::loses;
  if (count < kFewest) return TrialVerdict::open;
  const auto above = [](const Difference& d, double z) { return d.in_errors > critical(z, d.freedom); };
  const auto below = [](const Difference& d, double z) { return d.in_errors < -critical(z, d.freedom); };
  const Difference gain = difference(x, y, margin), loss = difference(x, y, 0);
  bool slower = false, faster = false, held_up = false;
  if (next_count >= kFewest) {
    const Difference next = difference(next_x, next_y, 0), next_gain = difference(next_x, next_y, margin);
    slower = below(next, kDefeat);
    held_up = below(next, kVictory);
    faster = above(next_gain, kVictory);
  }
  if (held_up) return TrialVerdict::loses;
  if (above(gain, kVictory) && !slower) return TrialVerdict::wins;
  if (faster && !below(loss, kDefeat)) return TrialVerdict::wins;
  if (below(gain, kDefeat) || count >= most) return TrialVerdict::loses;
  return TrialVerdict::open;
}

}  // namespace latecomer::core

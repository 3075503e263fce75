// SPDX-License-Identifier: BSD-3-Clause
// The times of the latest calls that one algorithm has served.
#pragma once

#include <algorithm>
#include <array>

#include "core/base/types.hpp"
#include "core/learning/judge.hpp"
#include "core/policy/policy.hpp"

namespace latecomer::core {

/// Measured calls of native before a rota begins, and measured calls before a median is used. Derived: the first epoch
/// of a program with slow calls has four calls. These calls only show whether a rota can pay, because the rota measures
/// native again (judge.hpp).
inline constexpr int kFirstMeasured = 4;
/// Measured calls of a winner before native may replace it, and calls in a row for which ranks reported their progress
/// (latecomer_edge) before they exchange patterns. With a smaller number, noise alone would replace winners.
inline constexpr int kEnoughMeasured = 8;

class Samples {
 public:
  /// Derived: after so many calls, an algorithm with a gain of 10% and deviations of 20% has won in one case of four;
  /// with half as many in one of eight. Older calls are forgotten.
  static constexpr int kKept = 32;
  void add_call(Nanoseconds after_last, double mean_elapsed) {
    const auto at = static_cast<std::size_t>(count_++ % kKept);
    after_last_[at] = static_cast<float>(after_last);
    elapsed_[at] = static_cast<float>(mean_elapsed);
  }
  void add_until_next(Nanoseconds until_next) {
    until_next_[static_cast<std::size_t>(count_next_++ % kKept)] = static_cast<float>(until_next);
  }
  void clear() { count_ = count_next_ = 0; }
  int count() const { return count_; }
  bool enough() const { return count_ >= kFirstMeasured; }
  double median_after() const { return median_of(after_last_); }
  double median(Objective objective) const { return median_of(times(objective)); }
  Timed timed(Objective objective) const {
    return {{times(objective).data(), kept(count_)}, {until_next_.data(), kept(count_next_)}};
  }

 private:
  using KeptTimes = std::array<float, kKept>;
  static std::size_t kept(int count) { return static_cast<std::size_t>(std::min(count, kKept)); }
  const KeptTimes& times(Objective objective) const {
    return objective == Objective::mean_elapsed ? elapsed_ : after_last_;
  }
  double median_of(KeptTimes values) const {
    const auto n = static_cast<std::ptrdiff_t>(kept(count_));
    if (n == 0) return -1;
    std::nth_element(values.begin(), values.begin() + n / 2, values.begin() + n);
    return values[static_cast<std::size_t>(n / 2)];
  }

  KeptTimes after_last_, elapsed_, until_next_;
  int count_ = 0, count_next_ = 0;
};

}  // namespace latecomer::core

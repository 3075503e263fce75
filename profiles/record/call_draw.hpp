// SPDX-License-Identifier: BSD-3-Clause
// Draws which calls of a thread are timed, so that their timing keeps its share of the run. The other calls rest. A
// call is timed with a probability of 2^-level, which depends on earlier calls only, and then counts 2^level times. So
// the sum of the times is unbiased in any program.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/text.hpp"
#include "core/base/types.hpp"

namespace latecomer::profiles {

using core::Nanoseconds;

class CallDraw {
 public:
  /// The weight of the call that begins; 0: it rests.
  std::uint32_t weigh_next() {
    if (surely_ > 0) [[unlikely]] {
      --surely_;
      return 1;
    }
    if (until_ > 0) {
      --until_;
      ++resting_;
      return 0;
    }
    return weight_;
  }
  /// Adds the time of a call that was timed. Returns whether draw_next() must follow.
  bool add(std::uint32_t weight, Nanoseconds time) {
    add_time(weight, time);
    return count_call(weight, time);
  }
  /// The two parts of add(), for a call whose time comes piece by piece.
  void add_time(std::uint32_t weight, Nanoseconds time) { sum_ += weight * time; }
  bool count_call(std::uint32_t weight, Nanoseconds time) {
    squares_ += static_cast<double>(weight) * static_cast<double>(time) * static_cast<double>(time);
    return ++timed_ % kCalls == 0 || weight_ > 1;
  }
  /// Draws the next call that is timed. `price`: nanoseconds of the run that pay for one timed call; 0: every call is
  /// timed. Returns the number of timed calls in the period that has ended; 0: the period goes on.
  std::uint64_t draw_next(std::uint32_t weight, Nanoseconds time, Nanoseconds at, Nanoseconds price);
  /// So many calls that follow are timed, whatever the draw says.
  void time_next(std::uint32_t calls) { surely_ = calls; }

  Nanoseconds sum() const { return sum_; }
  std::uint64_t timed() const { return timed_; }
  std::uint64_t resting() const { return resting_; }
  /// The standard error of the sum.
  double error() const { return std::sqrt(variance_); }

 private:
  /// The weight is chosen after so many timed calls, or if a call is timed after so long. Chosen: both follow a phase
  /// of the program soon.
  static constexpr std::uint64_t kCalls = 64;
  static constexpr Nanoseconds kTime = 10'000'000;

  void choose_weight(Nanoseconds at, Nanoseconds price);

  Nanoseconds sum_ = 0;
  std::uint64_t timed_ = 0, resting_ = 0;
  std::uint32_t until_ = 0;   ///< calls that rest before the next timed one
  std::uint32_t weight_ = 1;  ///< of that one
  std::uint32_t surely_ = 0;
  double variance_ = 0;  ///< of the sum
  double gap_ = 0;       ///< 1 / log(1 - 1 / weight)
  /// The squares of the times, summed since `timed_` was a power of two, and from the power before to that one.
  double squares_ = 0, squares_before_ = 0;
  Nanoseconds began_ = 0;  ///< of the period, and the counts then
  std::uint64_t timed_before_ = 0, resting_before_ = 0;
  core::SplitMix64 random_{1};
};

/// Draws which calls are timed among those that wait for nobody, but may take long. One in kOneIn is timed in the mean,
/// and stands for so many. After one that took as long as timing so many, the next one is timed surely.
class LocalDraw {
 public:
  /// The weight of the call that begins; 0: it is not timed.
  std::uint32_t weigh_next() {
    if (--until_ > 0) [[likely]]
      return 0;
    until_ = 1;
    return weight_;
  }
  /// Follows on a call that was timed.
  void draw_next(Nanoseconds time) {
    weight_ = time < kLong ? kOneIn : 1;
    if (weight_ == 1) return;
    random_ ^= random_ << 13;
    random_ ^= random_ >> 17;
    random_ ^= random_ << 5;
    until_ = 1 + random_ % (2 * kOneIn - 1);  // no period of the program is preferred
  }

 private:
  /// Chosen: timing then takes 0.4 ns of a call.
  static constexpr std::uint32_t kOneIn = 64;
  static constexpr Nanoseconds kLong = 25 * Nanoseconds{kOneIn};  // two readings of the counter take 23 ns (measured)
  std::uint32_t until_ = 1, weight_ = 1, random_ = 1;
};

}  // namespace latecomer::profiles

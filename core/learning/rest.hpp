// SPDX-License-Identifier: BSD-3-Clause
// Decides which epochs are idle. While no algorithm serves calls and arrivals are balanced, most epochs are not logged,
// so the cost of observation arises in a few calls of a thousand only. A rest is a sequence of idle epochs.
#pragma once

#include <algorithm>

#include "core/agreement/agreement.hpp"
#include "core/base/types.hpp"

namespace latecomer::core {

class Rest {
 public:
  /// Quiet announcements before the first rest. Derived: logs of the last two epochs may still be on their way.
  static constexpr int kCalm = 2;
  // Lengths of a rest in units of kSteadyEpoch calls.
  /// The first rest. Each later rest is four times as long as the one before, up to kLongest.
  static constexpr int kFirst = 2;
  /// The longest rest. Derived: of 4,128 calls, 32 are then observed (0.8%). A longer rest saves less than that, and
  /// notices a new pattern later.
  static constexpr int kLongest = 32;
  /// The longest idle epoch. Derived: the longest rest then has eight announcements, and each may end it.
  static constexpr int kStride = 4;
  static constexpr int kAwake = 1;  ///< logged epochs between two rests: the fewest that bring logs
  /// Nanoseconds of a rest at most; an idle epoch has at most an eighth of it. Derived: a new pattern stays unnoticed
  /// for at most 1% of a run of ten seconds.
  static constexpr Nanoseconds kBlind = 100'000'000;
  /// A rest ends after an epoch whose calls took this many times as long as the calls before the rest. With a smaller
  /// factor, noise ends rests. With a larger factor, late ranks that double the time stay unnoticed.
  static constexpr double kSlower = 2;

  struct Epoch {
    bool rest = false;
    std::uint64_t calls = 0;  ///< 0: the default
  };

  /// The kind of the epoch that an announcement begins. Call this function at every announcement, in order. `quiet`:
  /// more observations would change no decision (logs of the last two epochs may still be on their way). `n`, `now`:
  /// call number and time, by any clock. `glance`: number of calls of a logged epoch between two rests.
  Epoch next(bool quiet, std::uint64_t n, Nanoseconds now, std::uint64_t glance) {
    const double pace =
        n > asked_n_ ? static_cast<double>(now - asked_) / static_cast<double>(n - asked_n_) * Sequence::kSteadyEpoch
                     : 0;
    asked_ = now;
    asked_n_ = n;
    if (!quiet || 2 * pace > kBlind) {  // epochs take so long that observation is cheap
      if (!quiet) calm_ = 0;
      length_ = kFirst;
      left_ = 0;
      usual_ = 0;
      under_way_ = 1;
      return {};
    }
    if (calm_ < kCalm) {
      ++calm_;
      return Epoch{};
    }
    // During a rest, only the leader's clock is read. A late rank shows there, because it makes the calls take longer.
    if (left_ > 0 &&
        (static_cast<double>(now - begun_) + (under_way_ + 1) * pace > kBlind || pace > kSlower * usual_)) {
      left_ = 0;
      awake_ = kAwake;
    }
    if (left_ == 0) {
      under_way_ = 1;
      if (awake_ > 0) {
        --awake_;
        return Epoch{false, glance};
      }
      // Few calls lie between two rests, and the times of calls differ. So the rest before gives the usual time.
      usual_ = usual_ > 0
                   ? static_cast<double>(now - begun_) / static_cast<double>(n - begun_n_) * Sequence::kSteadyEpoch
                   : pace;
      begun_ = now;
      begun_n_ = n;
      left_ = length_;
      length_ = std::min(4 * length_, kLongest);
      stride_ = std::max(1, std::min(left_ * kStride / kLongest, static_cast<int>(kBlind / 8 / std::max(usual_, 1.0))));
    }
    under_way_ = std::min(stride_, left_);
    left_ -= under_way_;
    if (left_ == 0) awake_ = kAwake;
    return {true, static_cast<std::uint64_t>(under_way_) * Sequence::kSteadyEpoch};
  }

 private:
  int calm_ = 0, length_ = kFirst, left_ = 0, awake_ = 0;
  int stride_ = 1, under_way_ = 1;  ///< length of an idle epoch of this rest; of the present one, in kSteadyEpoch calls
  std::uint64_t asked_n_ = 0, begun_n_ = 0;
  Nanoseconds asked_ = 0, begun_ = 0;
  double usual_ = 0;  ///< nanoseconds per kSteadyEpoch calls, before the rest
};

}  // namespace latecomer::core

// SPDX-License-Identifier: BSD-3-Clause
// How often a leader looks where there is nothing to see. While nothing is dispatched and arrivals are balanced, most
// calls go by without a log: what observing costs is then paid for a few calls in a thousand.
#pragma once

#include <algorithm>

#include "core/agreement/agreement.hpp"
#include "core/base/types.hpp"

namespace latecomer::core {

class Rest {
 public:
  /// Quiet announcements before the first rest. Derived: logs of the last two epochs may still be under way.
  static constexpr int kCalm = 2;
  /// Epochs' worth of calls that rest at first; then four times as many, and
  static constexpr int kFirst = 2;
  /// epochs' worth of calls that rest in a row. Derived: of 4,128 calls, 32 are then observed (0.8%). A longer rest
  /// saves less than that, and is blind for longer.
  static constexpr int kLongest = 32;
  /// Of which so many are one epoch at most. Derived: the longest rest then has eight announcements, and each may end
  /// it.
  static constexpr int kStride = 4;
  static constexpr int kAwake = 1;  ///< epochs in a row between two rests: the fewest that bring logs
  /// No rest goes on for longer; no epoch of it for longer than an eighth of that. Derived: a new pattern goes
  /// unseen for at most 1% of a run of ten seconds.
  static constexpr Nanoseconds kBlind = 100'000'000;
  /// Nor after an epoch whose calls took so many times as long as those before the rest. A smaller factor ends rests
  /// because of noise, a larger one misses late ranks that double the time.
  static constexpr double kSlower = 2;

  struct Epoch {
    bool rest = false;
    std::uint64_t calls = 0;  ///< 0: as ever
  };

  /// The kind of the epoch that an announcement begins. Call it at every announcement, in order. `quiet`: more
  /// observations would change nothing (logs of the last two epochs may still be under way). `n`, `now`: call and time,
  /// by any clock. `glance`: calls to log between two rests, per epoch.
  Epoch next(bool quiet, std::uint64_t n, Nanoseconds now, std::uint64_t glance) {
    const double pace =
        n > asked_n_ ? static_cast<double>(now - asked_) / static_cast<double>(n - asked_n_) * Sequence::kSteadyEpoch
                     : 0;
    asked_ = now;
    asked_n_ = n;
    if (!quiet || 2 * pace > kBlind) {  // where epochs take long, what observing costs is nothing
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
    // During a rest only the leader's clock is read: a late rank makes the calls take longer.
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
      // Few calls are between two rests, and calls differ.
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
  int stride_ = 1, under_way_ = 1;  ///< epochs' worth of calls that one announcement lets rest; that the last did
  std::uint64_t asked_n_ = 0, begun_n_ = 0;
  Nanoseconds asked_ = 0, begun_ = 0;
  double usual_ = 0;  ///< nanoseconds per kSteadyEpoch calls, before the rest
};

}  // namespace latecomer::core

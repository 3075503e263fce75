// SPDX-License-Identifier: BSD-3-Clause
// How often a leader looks where there is nothing to see. While nothing is dispatched and arrivals are balanced, most epochs
// go by without a log: what observing costs is then paid for one epoch in sixteen.
#pragma once

#include <algorithm>

#include "core/base/types.hpp"

namespace latecomer::core {

class Rest {
 public:
  static constexpr int kCalm = 8;                      ///< quiet announcements before the first rest
  static constexpr int kLongest = 30;                  ///< epochs in a row that rest
  static constexpr int kAwake = 2;                     ///< epochs in a row between two rests
  static constexpr Nanoseconds kBlind = 100'000'000;   ///< no rest goes on for longer,
  static constexpr int kSlower = 2;                    ///< nor after an epoch that took so many times as long as the one before the rest

  /// Asked at every announcement, in order: whether the epoch that it begins is to rest. `quiet`: from what has been seen,
  /// looking longer would change nothing (logs of the last epoch or two may still be on their way). `now`: any clock.
  bool next(bool quiet, Nanoseconds now) {
    const Nanoseconds pace = now - asked_;
    asked_ = now;
    if (!quiet || 2 * pace > kBlind) {  // where epochs take long, what observing costs is nothing
      if (!quiet) calm_ = 0;
      length_ = 1, left_ = 0;
      return false;
    }
    if (calm_ < kCalm) return ++calm_, false;
    // The leader's clock is all that is looked at meanwhile: somebody who is late now makes epochs take longer.
    if (left_ > 0 && (now - begun_ + 2 * pace > kBlind || pace > kSlower * begun_at_)) left_ = 0, awake_ = kAwake;
    if (left_ == 0) {
      if (awake_ > 0) return --awake_, false;
      left_ = length_, length_ = std::min(4 * length_, kLongest);
      begun_ = now, begun_at_ = pace;
    }
    if (--left_ == 0) awake_ = kAwake;
    return true;
  }

 private:
  int calm_ = 0, length_ = 1, left_ = 0, awake_ = 0;
  Nanoseconds asked_ = 0, begun_ = 0, begun_at_ = 0;
};

}  // namespace latecomer::core

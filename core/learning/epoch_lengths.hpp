// SPDX-License-Identifier: BSD-3-Clause
// The lengths of epochs, from the pace of the calls and the waits at boundaries, and the rests between epochs.
#pragma once

#include <cstdint>
#include <vector>

#include "core/agreement/plan.hpp"
#include "core/learning/rest.hpp"
#include "core/learning/slot.hpp"

namespace latecomer::core {

class EpochLengths {
 public:
  explicit EpochLengths(int ranks) : ranks_(ranks) {}
  /// The time of the communicator's first call.
  void note_first_call(Nanoseconds now) { now_ = now; }
  /// Measures the pace of the calls since the announcement before. `n`: the call of this announcement.
  void begin_announcement(std::uint64_t n, Nanoseconds now);
  /// Adds the mean time that ranks waited at a boundary.
  void add_wait(Nanoseconds mean) {
    waited_ = waited_ == 0 ? static_cast<double>(mean) : (waited_ + static_cast<double>(mean)) / 2;
  }
  /// Sets the epoch of the announcement. `quiet`: more observations would change no decision. `slots`: those that were
  /// decided for it; empty: none was.
  void set_epoch(Announcement& announcement, bool quiet, const std::vector<Slot*>& slots);

 private:
  std::uint64_t choose_length(const std::vector<Slot*>& slots) const;

  int ranks_;
  Rest rest_;
  std::uint64_t n_ = 0;                            ///< call number of the last announcement
  Nanoseconds now_ = 0;                            ///< time of the last announcement
  double waited_ = 0;                              ///< recent mean wait at a boundary that waits, in nanoseconds
  double pace_ = 0;                                ///< nanoseconds per call between the last two announcements
  std::uint64_t glance_ = Sequence::kSteadyEpoch;  ///< calls of an epoch between two rests
};

}  // namespace latecomer::core

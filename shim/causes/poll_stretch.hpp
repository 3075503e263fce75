// SPDX-License-Identifier: BSD-3-Clause
// Says how much of a stretch of polls is a wait. A stretch is a row of polls of one thread, of which all but the last
// are unsuccessful, without another MPI call between them. This file knows no MPI and reads no clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/types.hpp"

namespace latecomer::shim {

using core::Nanoseconds;

/// Processor time of a thread, the time for which it was ready without a processor, and how often it got one, since the
/// thread began. And what it has executed, if that is known.
struct ThreadTimes {
  Nanoseconds cpu = 0, runnable = 0;
  std::int64_t slices = 0;
  std::uint64_t instructions = 0, cycles = 0;
};

/// Time that counts as waiting, and the part of it for which the thread slept.
struct PollWait {
  Nanoseconds time = 0, slept = 0;
};

/// A thread waits if half of its gaps between polls are at most kLonger longer than a poll. It also waits if it slept
/// for over half of the time for which no other thread had its core. Otherwise it works, and the polls are part of
/// that. A long stretch is judged in pieces.
class PollStretch {
 public:
  /// A stretch is divided into pieces of this length, whose end may read the kernel's counters. A gap of this length
  /// between quick polls is no wait, unless other threads had the core. Derived: a reading takes 1.3 us (measured),
  /// 0.1%.
  static constexpr Nanoseconds kPiece = 1'000'000;
  /// Chosen: other threads get the core and give it back, and the times are read, in 5 to 15 us beside busy processes
  /// (measured). A reading that takes longer was interrupted: its times are of two moments.
  static constexpr Nanoseconds kSwitch = 10'000;

  /// An unsuccessful poll has ended. `times`: nullptr if they were not read.
  void begin_stretch(Nanoseconds at, const ThreadTimes* times);
  /// Returns whether end_piece() must follow.
  bool begin_poll(Nanoseconds at) {
    gap_ = at - last_end_;
    ++gaps_;
    if (gap_ <= shortest_poll_ + kLonger) {
      ++short_gaps_;
      in_short_gaps_ += gap_;
    } else {
      in_long_gaps_ += gap_;
    }
    poll_ = at;
    return at - piece_ >= kPiece;
  }
  /// Ends the piece before the poll. `times`: nullptr if they could not be read; they were read from `at` to `resumed`,
  /// and the poll begins then.
  PollWait end_piece(const ThreadTimes* times, Nanoseconds at, Nanoseconds resumed);
  /// `found`: the poll was successful. It may have been shorter than the others for that.
  void end_poll(Nanoseconds at, bool found) {
    const Nanoseconds took = at - poll_;
    in_polls_ += took;
    if (!found) shortest_poll_ = timed_ ? std::min(shortest_poll_, took) : took;
    timed_ = timed_ || !found;
    last_end_ = at;
  }
  /// Ends the stretch at the end of its last poll. Returns the wait in its last piece.
  PollWait end_stretch();

  Nanoseconds began() const { return began_; }
  Nanoseconds last_end() const { return last_end_; }
  /// Polls in the piece.
  std::uint32_t polls() const { return gaps_; }
  /// Whether the last piece was a wait.
  bool waits() const { return waits_; }
  /// Whether begin_stretch() should get times: the last stretch could not be judged without them.
  bool needs_times() const { return needs_times_; }

 private:
  /// A poll and its loop differ by less, and 3 us of work between polls are more. (Measured: MPICH and Open MPI in
  /// shared memory, also yielding.)
  static constexpr Nanoseconds kLonger = 1000;

  void begin_piece(Nanoseconds at);
  /// A piece may have few gaps, whose length varies where other threads have the core at times.
  bool gaps_are_short() const { return gaps_ > 0 && short_before_ + short_gaps_ >= 0.5 * (gaps_before_ + gaps_); }

  Nanoseconds shortest_poll_ = 0;  ///< of the run: in a stretch, all polls may yield for long
  bool timed_ = false;             ///< there was such a poll
  bool needs_times_ = false;
  // Of the stretch.
  Nanoseconds began_ = 0, poll_ = 0, last_end_ = 0;
  Nanoseconds gap_ = 0;                    ///< the last one
  bool counted_ = false;                   ///< `times_` were read
  ThreadTimes times_;                      ///< at the beginning of the piece
  Nanoseconds undecided_ = 0;              ///< pieces without `times_`
  bool waits_ = false, by_times_ = false;  ///< of the last piece: it was a wait, and only its times said so
  double asleep_ = 0;                      ///< its share of sleep then
  bool ended_piece_ = false;
  double gaps_before_ = 0, short_before_ = 0;  ///< of earlier pieces, halved with each
  // Of the piece.
  Nanoseconds piece_ = 0, in_polls_ = 0, in_short_gaps_ = 0, in_long_gaps_ = 0;
  std::uint32_t gaps_ = 0, short_gaps_ = 0;
};

}  // namespace latecomer::shim

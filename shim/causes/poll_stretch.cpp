// SPDX-License-Identifier: BSD-3-Clause
// Judges the pieces of a stretch of polls.
#include "shim/causes/poll_stretch.hpp"

#include <utility>

namespace latecomer::shim {

void PollStretch::begin_piece(Nanoseconds at) {
  piece_ = at;
  in_polls_ = in_short_gaps_ = in_long_gaps_ = 0;
  gaps_ = short_gaps_ = 0;
}

void PollStretch::begin_stretch(Nanoseconds at, const ThreadTimes* times) {
  began_ = last_end_ = at;
  counted_ = times != nullptr;
  if (counted_) times_ = *times;
  undecided_ = 0;
  asleep_ = 0;
  waits_ = by_times_ = ended_piece_ = false;
  gaps_before_ = short_before_ = 0;
  begin_piece(at);
}

PollWait PollStretch::end_piece(const ThreadTimes* times, Nanoseconds at, Nanoseconds resumed) {
  const bool known = counted_ && times;
  const Nanoseconds whole = at - piece_, unjudged = std::exchange(undecided_, 0);
  const bool lasting = gap_ >= kPiece && gap_ > shortest_poll_ + kLonger;
  Nanoseconds cpu = 0, runnable = 0, slept = 0;
  if (known) {
    cpu = times->cpu - times_.cpu;
    runnable = std::clamp<Nanoseconds>(times->runnable - times_.runnable, 0, whole);
    slept = std::max<Nanoseconds>(0, whole - runnable - cpu);
  }
  // Others may have had the core in polls, since these may yield, and in the reading of the times. What is left of the
  // delay was in gaps.
  const Nanoseconds elsewhere = whole - in_short_gaps_ - in_long_gaps_;
  const Nanoseconds preempted = std::clamp<Nanoseconds>(runnable - elsewhere, 0, in_long_gaps_);
  const Nanoseconds poll =
      std::min(shortest_poll_, known ? std::max<Nanoseconds>(0, elsewhere - runnable) / std::max(1u, gaps_ - 1) : 0);
  const bool spins = gaps_are_short() && in_short_gaps_ <= (poll + kLonger) * short_gaps_;
  PollWait out;
  asleep_ = 0;
  waits_ = true;
  if (2 * slept > whole - runnable) {
    asleep_ = static_cast<double>(slept) / static_cast<double>(whole);
    out = {whole + unjudged, slept + static_cast<Nanoseconds>(asleep_ * static_cast<double>(unjudged))};
  } else if (spins) {
    out = {whole + unjudged, slept};
    // The thread computed in the last gap, unless it was not on its core.
    if (lasting && !(known && 2 * (cpu - in_short_gaps_ - in_polls_) < gap_)) {
      waits_ = false;
      out = {whole - gap_, 0};
    }
  } else if (2 * preempted > in_long_gaps_ &&
             in_short_gaps_ + in_long_gaps_ - preempted <=
                 (poll + kLonger) * gaps_ + kSwitch * std::max<std::int64_t>(1, times->slices - times_.slices)) {
    out = {whole + unjudged, slept};  // without others, the gaps would be short: the program may yield in them
  } else {
    waits_ = false;
    if (!known) undecided_ = unjudged + whole;
  }
  by_times_ = waits_ && !spins;
  needs_times_ = !spins || lasting;
  ended_piece_ = true;
  counted_ = times != nullptr;
  if (counted_) times_ = *times;
  gaps_before_ = (gaps_before_ + gaps_) / 2;
  short_before_ = (short_before_ + short_gaps_) / 2;
  begin_piece(at);
  poll_ = resumed;
  return out;
}

PollWait PollStretch::end_stretch() {
  if (!ended_piece_) needs_times_ = false;
  const Nanoseconds rest = last_end_ - piece_;
  const bool waits = gaps_ == 0 ? waits_
                                : gaps_are_short() &&
                                      (!ended_piece_ || waits_ || in_short_gaps_ <= kLonger * Nanoseconds{short_gaps_});
  if (waits) return {rest, 0};
  if (by_times_) return {rest, static_cast<Nanoseconds>(asleep_ * static_cast<double>(rest))};
  return {};
}

}  // namespace latecomer::shim

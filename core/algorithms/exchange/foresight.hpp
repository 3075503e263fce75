// SPDX-License-Identifier: BSD-3-Clause
// What becomes of eager messages that keep to a plan, to the nanosecond: when each is posted, when it has passed its receiver's
// port, when it has been taken in there. By the rules of the model (core/model/simulate.hpp, one port each way) and of the schedules
// that are made of plans (clairvoyant/walk.hpp, paced, one message at a time).
//
// A plan says slots, and ranks are early in them by whatever they arrived early or a message's way is shorter than whole slots.
// Along a chain of ranks that nothing holds back that adds up; a whole slot early, a message takes the port of one that was
// planned before it, and from there on nothing is in step. So what is planned next has to know.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "core/algorithms/exchange/plan.hpp"

namespace latecomer::core::exchange {

/// Slots, as nanoseconds.
struct Grid {
  Nanoseconds slot = 1;   ///< length of one
  Nanoseconds phase = 0;  ///< where one begins, before all that happens
  /// The next beginning of one.
  Nanoseconds up(Nanoseconds t) const { return phase + (t - phase + slot - 1) / slot * slot; }
};

class Foresight {
 public:
  /// Refers to the problem, whose segments have to be eager.
  Foresight(const Problem& problem, const Grid& grid);

  /// When rank r, having come, has taken in what lies there, and what lands until then: 150 messages in 13 slots, 14 with those 13.
  Nanoseconds begins(Rank r) const;
  /// It has.
  void begin(Rank r) { at(r).begun = true; }

  /// Whether a message planned now will be at its receiver's port clearly after those planned before it.
  bool in_turn(Rank src, Rank dst, Nanoseconds now);

  /// On the grid.
  struct Planned {
    Nanoseconds landed;                ///< the first slot at which it has been taken in for certain
    Nanoseconds may_send, may_receive; ///< its sender and its receiver the next
  };
  /// Plans a message for now, which is on the grid. `additions` follow from it.
  Planned send(Rank src, Rank dst, Bytes bytes, int additions, Nanoseconds now);

 private:
  static constexpr Nanoseconds kNever = INT64_MIN / 4;
  struct Landing {
    Nanoseconds posted, landed, counts;  ///< by its sender; at the receiver; what that sends from then on waits for it
    int additions;               ///< left to do,
    Nanoseconds adding, adds;    ///< what one takes, and since when the next waits for the processor; kNever: not received yet
  };
  struct Course {
    Nanoseconds left = kNever;    ///< its last message has left its port
    Nanoseconds sent = kNever;    ///< its last message was posted
    Nanoseconds asks = kNever, asked = kNever;  ///< the processor for a message, if it is sent now; for the last
    Nanoseconds received = kNever;  ///< the last message to it, but for adding
    Nanoseconds paced = kNever;   ///< what it has to wait for has been taken in
    Nanoseconds processor = 0;    ///< free from then on
    Nanoseconds port = kNever;    ///< to receive, is free from then on
    Nanoseconds posted = kNever;  ///< the last message to it
    Nanoseconds taken_in = 0;     ///< before it has begun: all there is
    Nanoseconds counts = kNever;  ///< of the last landing
    bool begun = false;
    std::deque<Landing> lying;    ///< not taken in yet, in the order of landing
  };
  Course& at(Rank r) { return courses_[static_cast<std::size_t>(r)]; }
  const Course& at(Rank r) const { return courses_[static_cast<std::size_t>(r)]; }
  /// When r could post what is planned for now: its processor comes to it then.
  Nanoseconds ready(Course& r, Nanoseconds now) const;
  Nanoseconds next_step(Course& r) const;

  const Problem& problem_;
  Grid grid_;
  Nanoseconds flight_, overhead_, shortest_, others_, apart_, behind_;
  std::vector<Course> courses_;
};

}  // namespace latecomer::core::exchange

// SPDX-License-Identifier: BSD-3-Clause
// The course of messages that keep to a plan, to the nanosecond: when each is posted, when it has passed its receiver's
// port, and when the receiver has taken it in. The rules are those of the model (core/model/simulate.hpp, one port each
// way) and of the schedules that follow a plan (clairvoyant/walk.hpp, paced).
//
// A plan is in slots, and ranks are early in them: they arrive before a slot, or a message takes less than whole slots.
// Along a chain of ranks this adds up. A message that is one slot early takes the port of a message that was planned
// before it, and from then on nothing keeps to the plan. So the planner has to follow the course.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/algorithms/clairvoyant/walk.hpp"
#include "core/algorithms/exchange/pace.hpp"
#include "core/algorithms/exchange/plan.hpp"

namespace latecomer::core::exchange {

using clairvoyant::kPosted;

/// Slots, as nanoseconds.
struct Grid {
  Nanoseconds slot = 1;   ///< length of one
  Nanoseconds phase = 0;  ///< where one begins, before all that happens
  /// The next beginning of one.
  Nanoseconds up(Nanoseconds t) const { return phase + (t - phase + slot - 1) / slot * slot; }
};

/// When something happens.
struct Moment {
  static constexpr Nanoseconds kNever = INT64_MIN / 4, kPending = INT64_MAX / 4;
  Nanoseconds at = kNever;
  Rank rank = -1;           ///< where all that led to it began
  std::int64_t cause = -1;  ///< what did, as Causes counts; -1: nothing
  int turn = 0;             ///< among what the same caused at the same time
};

/// Of two events at the same time the model takes the one that was caused first. Ranks that do the same in every slot
/// differ in nothing else, so the planner has to know the causes.
class Causes {
 public:
  /// What happens later because of `cause`.
  Moment causing(const Moment& cause, Nanoseconds later) {
    const Cause next{cause.at, cause.cause, cause.turn};
    if (all_.size() < kKept) all_.push_back(next);
    else all_[static_cast<std::size_t>(count_) % kKept] = next;
    return {later, cause.rank, count_++, 0};
  }
  bool earlier(const Moment& a, const Moment& b) const {
    if (a.at != b.at) return a.at < b.at;
    std::int64_t x = a.cause, y = b.cause;
    int turn_of_a = a.turn, turn_of_b = b.turn;
    for (int i = 0; i < kComparedCauses && x != y; ++i) {
      const Cause *of_a = find(x), *of_b = find(y);
      if (!of_a || !of_b) {
        if (of_a || of_b) return !of_a;
        break;
      }
      if (of_a->at != of_b->at) return of_a->at < of_b->at;
      x = of_a->cause, y = of_b->cause, turn_of_a = of_a->turn, turn_of_b = of_b->turn;
    }
    if (x == y && turn_of_a != turn_of_b) return turn_of_a < turn_of_b;
    return a.rank < b.rank;
  }
  const Moment& later(const Moment& a, const Moment& b) const { return earlier(a, b) ? b : a; }

 private:
  struct Cause {
    Nanoseconds at;
    std::int64_t cause;
    int turn;
  };
  /// Causes that are compared, some three a message: with 8 one plan in three was lost, with 24 one in fifty, with 64 a
  /// few of long ones.
  static constexpr int kComparedCauses = 1024;
  /// Causes that are remembered: kComparedCauses each of 1,024 ranks.
  static constexpr std::size_t kKept = 1 << 20;
  const Cause* find(std::int64_t i) const {
    return i >= 0 && i + static_cast<std::int64_t>(kKept) >= count_ ? &all_[static_cast<std::size_t>(i) % kKept]
                                                                    : nullptr;
  }
  std::int64_t count_ = 0;
  std::vector<Cause> all_;
};

class Foresight {
 public:
  /// Refers to the problem. `sends`: messages that a rank has under way at a time.
  Foresight(const Problem& problem, const Grid& grid, int sends);

  /// When rank r, having come, has taken in what lies there, and what lands until then: 150 messages in 13 slots, 14
  /// with those 13.
  Nanoseconds begins(Rank r) const;
  /// It has.
  void begin(Rank r) { at(r).begun = true; }

  /// Whether a message planned now, to be added there or not, will be at its receiver's port clearly after those
  /// planned before it.
  bool in_turn(Rank src, Rank dst, bool added, Nanoseconds now);

  /// On the grid.
  struct Planned {
    Nanoseconds landed;                 ///< the first slot at which it has been taken in for certain
    Nanoseconds may_send, may_receive;  ///< its sender and its receiver the next
    bool held;                          ///< back by its receiver
  };
  /// Whether the receiver of a message planned now can hold it back, however long its sender has been ready.
  bool holds(Rank dst, Nanoseconds now);

  /// What follows from a message.
  struct Work {
    int additions = 0;
    bool copied = false;  ///< the sum, to where it belongs
  };
  /// Plans a message for now, which is on the grid.
  Planned send(Rank src, Rank dst, Bytes bytes, const Work& work, Nanoseconds now);

 private:
  static constexpr Nanoseconds kNever = Moment::kNever, kPending = Moment::kPending;
  struct Landing {
    Moment landed;
    Nanoseconds counts;  ///< what is sent from then on waits for it
    Work work;
    Nanoseconds adding;  ///< what one takes
    Moment done;         ///< taken in, once that is known
  };
  struct Adding {
    Moment asks;  ///< for the processor
    std::int64_t landing;
    int left;
  };
  struct Course {
    std::array<Moment, kMostSends>
        sent;  ///< the last messages are complete; [next_sent]: the oldest of those that may be under way
    int next_sent = 0;
    Moment asked;                  ///< for the processor, for the last
    Nanoseconds goes = kNever;     ///< both sides have posted the last message from it (nothing else may go before),
    Nanoseconds comes = kNever;    ///< to it
    Nanoseconds left = kNever;     ///< it has passed the port to send,
    Nanoseconds port = kNever;     ///< to receive
    int waiting = 0;               ///< messages that wait for it to come
    Nanoseconds processor = 0;     ///< free from then on
    Nanoseconds settled = kNever;  ///< what it was asked for until then
    Nanoseconds taken_in = 0;      ///< before it has begun: all there is
    Nanoseconds counts = kNever;   ///< of the last landing
    bool begun = false;
    std::deque<Landing> landings;  ///< from number `first` on
    std::int64_t first = 0, to_receive = 0, to_wait_for = 0;
    std::int64_t generated = 0;  ///< of these the operations are generated before those of its next message
    std::deque<Adding> adding;   ///< one after the other
    std::array<Nanoseconds, kPosted> received;   ///< by number: the last of those
    std::vector<Nanoseconds> added;              ///< [rooms] what came last into that one; kPending: not yet
    std::int64_t to_add = 0, contributions = 0;  ///< the next to get a room, of so many
    Moment moved, summed;  ///< what its next message waits for: the last landing without additions, with
    Nanoseconds looked = kNever, ready = 0;  ///< for a message planned for then, which nothing has changed since
    Landing& landing(std::int64_t number) { return landings[static_cast<std::size_t>(number - first)]; }
    std::int64_t end() const { return first + static_cast<std::int64_t>(landings.size()); }
  };
  Course& at(Rank r) { return courses_[static_cast<std::size_t>(r)]; }
  const Course& at(Rank r) const { return courses_[static_cast<std::size_t>(r)]; }
  /// When r could post what is planned for now: its processor comes to it then.
  Nanoseconds ready(Course& r, Nanoseconds now);
  /// What follows later from a moment. Without a processor's time to wait for nobody asks what came first.
  Moment after(const Moment& cause, Nanoseconds later) {
    return overhead_ + adding_ > 0 ? causes_.causing(cause, later) : Moment{later};
  }
  /// A message planned for now.
  struct Going {
    Nanoseconds posted;   ///< by its sender,
    Nanoseconds present;  ///< its receiver has come, if it waits for that,
    Nanoseconds goes;     ///< both
    bool early;           ///< before what was planned first
    Moment held;          ///< by a receive that waits for what is to land before, since it would be early otherwise
    bool is_held() const { return held.at != kNever; }
  };
  Going going(Rank src, Rank dst, Bytes bytes, Nanoseconds now);
  /// What a receive planned for now can wait for: what is to land before has landed.
  const Moment& pace(Course& r, Nanoseconds now) { return ready(r, now), causes_.later(r.moved, r.summed); }
  /// When r asks its processor for the next message.
  const Moment& asks(const Course& r) const;
  /// What r's processor does next, but for messages of its own, if it asks before `moment`. False: nothing does.
  bool step(Course& r, const Moment& moment);
  void receive(Course& r, const Moment& asks);
  void add(Course& r);
  /// About: r's processor with what is planned for it, but for messages of its own.
  Nanoseconds busy_until(Course& r) const;
  /// Whether a receive for the next message to r will have been posted by then. `now`: as for ready.
  bool has_receive(Course& r, bool added, Nanoseconds then, Nanoseconds now);
  /// Until then a message waits for its receiver, if it does.
  Nanoseconds present(Rank dst, Bytes bytes) const {
    return problem_.network.eager(bytes) ? kNever : problem_.arrivals[static_cast<std::size_t>(dst)];
  }

  const Problem& problem_;
  Grid grid_;
  int sends_;
  Nanoseconds overhead_, adding_, shortest_, apart_, behind_, late_;
  std::vector<Course> courses_;
  Causes causes_;
};

}  // namespace latecomer::core::exchange

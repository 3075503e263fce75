// SPDX-License-Identifier: BSD-3-Clause
// What becomes of messages that keep to a plan, to the nanosecond: when each is posted, when it has passed its receiver's
// port, when it has been taken in there. By the rules of the model (core/model/simulate.hpp, one port each way) and of the schedules
// that are made of plans (clairvoyant/walk.hpp, paced).
//
// A plan says slots, and ranks are early in them by whatever they arrived early or a message's way is shorter than whole slots.
// Along a chain of ranks that nothing holds back that adds up; a whole slot early, a message takes the port of one that was
// planned before it, and from there on nothing is in step. So what is planned next has to know.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/algorithms/clairvoyant/walk.hpp"
#include "core/algorithms/exchange/plan.hpp"

namespace latecomer::core::exchange {

using clairvoyant::kPosted;
/// Sends of a rank that may be under way at a time.
inline constexpr int kMostSends = 4;

/// Slots, as nanoseconds.
struct Grid {
  Nanoseconds slot = 1;   ///< length of one
  Nanoseconds phase = 0;  ///< where one begins, before all that happens
  /// The next beginning of one.
  Nanoseconds up(Nanoseconds t) const { return phase + (t - phase + slot - 1) / slot * slot; }
};

/// When something happens. Of what happens at the same time the model takes first what was caused first, and ranks that do the
/// same slot after slot differ in nothing else: half a microsecond of overhead, and they are out of step.
class Moment {
 public:
  static constexpr Nanoseconds kNever = INT64_MIN / 4, kPending = INT64_MAX / 4;
  Moment() = default;
  explicit Moment(Nanoseconds at, Rank rank = -1) : at(at), rank_(rank) {}
  Moment(const Moment& o) : Moment() { *this = o; }
  Moment& operator=(const Moment& o) {
    at = o.at, rank_ = o.rank_, known_ = o.known_;
    std::copy_n(o.causes_.begin(), known_, causes_.begin());
    return *this;
  }
  bool operator<(const Moment& o) const {
    if (at != o.at) return at < o.at;
    const auto end = causes_.begin() + static_cast<std::ptrdiff_t>(std::min(known_, o.known_));
    if (const auto [mine, theirs] = std::mismatch(causes_.begin(), end, o.causes_.begin()); mine != end) return *mine < *theirs;
    return known_ != o.known_ ? known_ < o.known_ : rank_ < o.rank_;
  }
  /// Something later that it causes.
  Moment causing(Nanoseconds later) const {
    Moment out(later, rank_);
    out.known_ = std::min(known_ + 1, kCauses);
    out.causes_[0] = at;
    std::copy_n(causes_.begin(), out.known_ - 1, out.causes_.begin() + 1);
    return out;
  }
  Nanoseconds at = kNever;

 private:
  /// Causes that are remembered, some three a message: with 24 one plan in fifty was lost, with 8 one in three.
  static constexpr std::size_t kCauses = 64;
  Rank rank_ = -1;  // where all that began
  std::size_t known_ = 0;
  std::array<Nanoseconds, kCauses> causes_;  // [known_] when it was caused, and when that was, and so on
};

class Foresight {
 public:
  /// Refers to the problem. `sends`: messages that a rank has under way at a time.
  Foresight(const Problem& problem, const Grid& grid, int sends);

  /// When rank r, having come, has taken in what lies there, and what lands until then: 150 messages in 13 slots, 14 with those 13.
  Nanoseconds begins(Rank r) const;
  /// It has.
  void begin(Rank r) { at(r).begun = true; }

  /// Whether a message planned now, to be added there or not, will be at its receiver's port clearly after those planned before it.
  bool in_turn(Rank src, Rank dst, bool added, Nanoseconds now);

  /// On the grid.
  struct Planned {
    Nanoseconds landed;                ///< the first slot at which it has been taken in for certain
    Nanoseconds may_send, may_receive; ///< its sender and its receiver the next
  };
  /// Plans a message for now, which is on the grid. `additions` follow from it.
  Planned send(Rank src, Rank dst, Bytes bytes, int additions, Nanoseconds now);

 private:
  static constexpr Nanoseconds kNever = Moment::kNever, kPending = Moment::kPending;
  struct Landing {
    Moment landed;
    Nanoseconds counts;  ///< what is sent from then on waits for it
    int additions;
    Nanoseconds adding;  ///< what one takes
    Moment done;         ///< taken in, once that is known
  };
  struct Adding {
    Moment asks;         ///< for the processor
    std::int64_t landing;
    int left;
  };
  struct Course {
    std::array<Moment, kMostSends> sent;  ///< the last messages are complete; [next_sent]: the oldest of those that may be under way
    int next_sent = 0;
    Moment asked;                  ///< for the processor, for the last
    Nanoseconds goes = kNever;     ///< both sides have posted the last message from it,
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
    std::deque<Adding> adding;     ///< one after the other
    std::array<Nanoseconds, kPosted> received;  ///< by number: the last of those
    std::vector<Nanoseconds> added;             ///< [rooms] what came last into that one; kPending: not yet
    std::int64_t to_add = 0, contributions = 0;  ///< the next to get a room, of so many
    Moment moved, summed;          ///< what its next message waits for: the last landing without additions, with
    Nanoseconds looked = kNever, ready = 0;  ///< for a message planned for then, which nothing has changed since
    Landing& landing(std::int64_t number) { return landings[static_cast<std::size_t>(number - first)]; }
    std::int64_t end() const { return first + static_cast<std::int64_t>(landings.size()); }
  };
  Course& at(Rank r) { return courses_[static_cast<std::size_t>(r)]; }
  const Course& at(Rank r) const { return courses_[static_cast<std::size_t>(r)]; }
  /// When r could post what is planned for now: its processor comes to it then.
  Nanoseconds ready(Course& r, Nanoseconds now) const;
  /// What follows later from a moment. Without a processor's time to wait for nobody asks what came first.
  Moment after(const Moment& cause, Nanoseconds later) const { return overhead_ + adding_ > 0 ? cause.causing(later) : Moment(later); }
  /// When r asks its processor for the next message.
  const Moment& asks(const Course& r) const;
  /// What r's processor does next, but for messages of its own, if it asks before `moment`. False: nothing does.
  bool step(Course& r, const Moment& moment) const;
  void receive(Course& r, const Moment& asks) const;
  void add(Course& r) const;
  /// Whether a receive for the next message to r will have been posted by then. `now`: as for ready.
  bool has_receive(Course& r, bool added, Nanoseconds then, Nanoseconds now) const;
  /// Until then a message waits for its receiver, if it does.
  Nanoseconds present(Rank dst, Bytes bytes) const { return problem_.network.eager(bytes) ? kNever : problem_.arrivals[static_cast<std::size_t>(dst)]; }

  const Problem& problem_;
  Grid grid_;
  int sends_;
  Nanoseconds overhead_, adding_, shortest_, apart_, behind_;
  std::vector<Course> courses_;
};

}  // namespace latecomer::core::exchange

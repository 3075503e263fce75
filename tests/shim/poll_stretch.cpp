// SPDX-License-Identifier: BSD-3-Clause
// Tests that a stretch of polls is a wait or work by what its thread does between the polls. The clocks are made up.
#include "shim/causes/poll_stretch.hpp"

#include <catch2/catch.hpp>
#include <vector>

using namespace latecomer::shim;

namespace {

constexpr Nanoseconds kPoll = 200, kUs = 1000, kMs = 1'000'000;

/// What the thread does for a time: on its core, ready without a core, asleep. `in_poll`: ready in the poll after it.
struct Spell {
  Nanoseconds busy = 0, preempted = 0, asleep = 0, in_poll = 0;
};

/// A thread that polls, and its clocks.
class Thread {
 public:
  PollStretch stretch;
  PollWait waited;         ///< in the last stretch
  Nanoseconds length = 0;  ///< of the last stretch
  int readings = 0;
  bool has_counters = true;

  /// Runs a stretch with these gaps in turn, until it has lasted for `time`. `in_poll`: beyond kPoll, of each poll.
  PollWait run(const std::vector<Spell>& gaps, Nanoseconds time, Spell in_poll = {}) {
    pass({10 * kUs});  // another call
    waited = {};
    const ThreadTimes* times = stretch.needs_times() ? read() : nullptr;
    const Nanoseconds begin = at_;
    stretch.begin_stretch(at_, times);
    for (std::size_t i = 0; at_ - begin < time; ++i) {
      pass(gaps[i % gaps.size()]);
      if (stretch.begin_poll(at_)) {
        const Nanoseconds before = at_;
        times = read();
        add(stretch.end_piece(times, before, at_));
      }
      pass({kPoll});
      pass(in_poll);
      pass({0, gaps[i % gaps.size()].in_poll});
      stretch.end_poll(at_, at_ - begin >= time);
    }
    add(stretch.end_stretch());
    length = at_ - begin;
    return waited;
  }
  double share() const { return static_cast<double>(waited.time) / static_cast<double>(length); }

 private:
  void pass(const Spell& spell) {
    at_ += spell.busy + spell.preempted + spell.asleep;
    times_.cpu += spell.busy;
    times_.runnable += spell.preempted;
    times_.slices += spell.preempted > 0;
  }
  const ThreadTimes* read() {
    ++readings;
    pass({kUs});
    return has_counters ? &times_ : nullptr;
  }
  void add(const PollWait& wait) {
    waited.time += wait.time;
    waited.slept += wait.slept;
  }
  Nanoseconds at_ = kMs;
  ThreadTimes times_;
};

/// So many gaps of one kind, then one of another kind.
std::vector<Spell> many(std::size_t n, Spell usual, Spell last) {
  std::vector<Spell> gaps(n, usual);
  gaps.push_back(last);
  return gaps;
}

}  // namespace

TEST_CASE("polls: a thread that spins waits", "[polls]") {
  for (const Nanoseconds gap : {Nanoseconds{20}, kUs, kUs + kPoll}) {
    Thread thread;
    thread.run({{gap}}, 20 * kMs);
    CAPTURE(gap);
    CHECK(thread.share() > 0.9999);
    CHECK(thread.waited.slept == 0);
  }
}

TEST_CASE("polls: a thread that works between polls does not wait", "[polls]") {
  for (const Nanoseconds gap : {kUs + kPoll + 1, 3 * kUs, 20 * kUs, kMs, 5 * kMs}) {
    Thread thread;
    for (const Nanoseconds time : {20 * kMs, 20 * kMs, 500 * kUs}) {
      thread.run({{gap}}, time);
      CAPTURE(gap, time);
      CHECK(thread.waited.time == 0);
    }
  }
}

TEST_CASE("polls: half of the gaps decide", "[polls]") {
  for (const Nanoseconds time : {6 * kUs, 20 * kMs}) {
    Thread thread;
    thread.run({{20}, {3 * kUs}}, time);
    CHECK(thread.waited.time == thread.length);
    thread.run({{20}, {3 * kUs}, {3 * kUs}}, time);
    CHECK(thread.waited.time == 0);
    thread.run({{20}, {20}, {3 * kUs}}, time);
    CHECK(thread.waited.time == thread.length);
  }
}

TEST_CASE("polls: a slow poll allows gaps that are as long", "[polls]") {
  Thread thread;
  thread.run({{8 * kUs}}, 20 * kMs, {8 * kUs});
  CHECK(thread.share() > 0.999);
  thread.run({{8 * kUs}}, 20 * kMs);
  CHECK(thread.waited.time == 0);
}

TEST_CASE("polls: a thread that sleeps between polls waits", "[polls]") {
  for (const Nanoseconds nap : {110 * kUs, kMs + 60 * kUs}) {
    Thread thread;
    thread.run({{kUs, 0, nap}}, 20 * kMs);  // the second piece decides about the first, too
    CAPTURE(nap);
    CHECK(thread.share() > 0.999);
    CHECK(thread.waited.slept > thread.length * 9 / 10);
    thread.run({{kUs, 0, nap}}, 2 * kMs);
    CHECK(thread.share() > 0.999);
    CHECK(thread.waited.slept <= thread.waited.time);
  }
  // One gap is the whole stretch: known from the second such stretch on.
  Thread thread;
  thread.run({{kUs, 0, 20 * kMs}}, kMs);
  CHECK(thread.waited.time == 0);
  thread.run({{kUs, 0, 20 * kMs}}, kMs);
  CHECK(thread.share() > 0.999);
}

TEST_CASE("polls: sleep for less than half of the time is no wait", "[polls]") {
  Thread thread;
  thread.run({{60 * kUs, 0, 50 * kUs}}, 20 * kMs);
  CHECK(thread.waited.time == 0);
  CHECK(thread.waited.slept == 0);
  // Time that other threads took counts neither way.
  thread.run({{40 * kUs, 40 * kUs, 50 * kUs}}, 20 * kMs);
  CHECK(thread.share() > 0.9);
}

TEST_CASE("polls: gaps in which other threads have the core belong to a wait", "[polls]") {
  Thread thread;
  for (const Nanoseconds slice : {kMs, 4 * kMs}) {
    thread.run(many(5000, {20}, {20, slice}), 40 * kMs);
    CHECK(thread.share() > 0.999);
    // Others had it in three polls in turn. After that, caches are cold.
    std::vector<Spell> gaps(5000, {20});
    gaps.insert(gaps.end(), 3, {2 * kUs, 0, 0, slice});
    thread.run(gaps, 40 * kMs);
    CHECK(thread.share() > 0.999);
  }
  // The program yields between polls.
  for (const Nanoseconds slice : {20 * kUs, kMs, 4 * kMs}) {
    thread.run({{3 * kUs, slice}}, 40 * kMs);
    thread.run({{3 * kUs, slice}}, 40 * kMs);
    CAPTURE(slice);
    CHECK(thread.share() > 0.999);
  }
}

TEST_CASE("polls: work stays work where other threads have the core at times", "[polls]") {
  for (const Nanoseconds work : {3 * kUs, 20 * kUs, kMs}) {
    Thread thread;
    thread.run(many(static_cast<std::size_t>(kMs / work), {work}, {work, 4 * kMs}), 40 * kMs);
    CAPTURE(work);
    CHECK(thread.waited.time == 0);
  }
}

TEST_CASE("polls: polls that yield for a time slice make no wait of the work between", "[polls]") {
  Thread thread;
  thread.run({{20}}, 40 * kMs, {0, kMs, 0});
  CHECK(thread.share() > 0.999);
  for (const Nanoseconds work : {100 * kUs, kMs}) {
    Thread busy;
    busy.run({{work}}, 40 * kMs, {0, 2 * work, 0});
    CAPTURE(work);
    CHECK(busy.waited.time == 0);
  }
}

TEST_CASE("polls: a thread that spins at times and computes between waits at times only", "[polls]") {
  Thread thread;
  thread.run(many(20'000, {20}, {100 * kMs}), 500 * kMs);
  CHECK(thread.share() < 0.05);
  CHECK(thread.share() > 0.03);
}

TEST_CASE("polls: the kernel's counters are read in long stretches only", "[polls]") {
  Thread thread;
  for (int i = 0; i < 100; ++i) thread.run({{kUs}}, 900 * kUs);
  for (int i = 0; i < 100; ++i) thread.run({{20 * kUs}}, 900 * kUs);
  CHECK(thread.readings == 0);
  thread.run({{20 * kUs}}, 20 * kMs);
  CHECK(thread.readings >= 18);
  CHECK(thread.readings <= 20);
  thread.has_counters = false;
  thread.run({{20}}, 20 * kMs);
  CHECK(thread.waited.time == thread.length);
  thread.run({{kUs, 0, kMs}}, 20 * kMs);
  CHECK(thread.waited.time == 0);
}

TEST_CASE("polls: one poll is no wait", "[polls]") {
  Thread thread;
  CHECK(thread.run({}, 0).time == 0);
}

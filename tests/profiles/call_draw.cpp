// SPDX-License-Identifier: BSD-3-Clause
// Tests that the calls of a draw stand for all calls: without bias, with the stated error, and at the price.
#include "profiles/record/call_draw.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

using namespace latecomer;
using namespace latecomer::profiles;

namespace {

constexpr Nanoseconds kPrice = 5000, kBetween = 100;
constexpr std::uint64_t kCalls = 400'000;

/// Runs the calls, which take time(call), from a time that seeds the draw. Returns the sum of their times.
Nanoseconds run(CallDraw& draw, Nanoseconds at, std::uint64_t calls,
                const std::function<Nanoseconds(std::uint64_t)>& time) {
  Nanoseconds sum = 0;
  for (std::uint64_t n = 0; n < calls; ++n) {
    const Nanoseconds took = time(n);
    const std::uint32_t weight = draw.weigh_next();
    sum += took;
    at += kBetween + took;
    if (weight > 0 && draw.add(weight, took)) draw.draw_next(weight, took, at, kPrice);
  }
  return sum;
}

}  // namespace

TEST_CASE("call draw: the sum is unbiased, with the stated error", "[draw]") {
  const std::function<Nanoseconds(std::uint64_t)> programs[] = {
      [](std::uint64_t) { return 120; },
      [](std::uint64_t n) { return n % 32 == 0 ? 2000 : 40; },        // as long as the distance of drawn calls
      [](std::uint64_t n) { return n % 1000 == 999 ? 20'000 : 60; },  // a quarter of the time in few calls
  };
  constexpr int kRounds = 300;
  for (const auto& program : programs) {
    double errors = 0, squares = 0, stated = 0;
    for (int round = 0; round < kRounds; ++round) {
      CallDraw draw;
      const Nanoseconds sum = run(draw, 1'000'000'007LL * (round + 1), kCalls, program);
      const auto error = static_cast<double>(draw.sum() - sum);
      errors += error;
      squares += error * error;
      stated += draw.error() * draw.error();
      REQUIRE(draw.timed() + draw.resting() == kCalls);
      REQUIRE(draw.timed() < 250'000);
    }
    const double scatter = std::sqrt(squares / kRounds);
    INFO("mean error " << errors / kRounds << ", scatter " << scatter << ", stated " << std::sqrt(stated / kRounds));
    CHECK(std::abs(errors / kRounds) < 4 * scatter / std::sqrt(kRounds));
    CHECK(std::sqrt(stated / kRounds) == Approx(scatter).epsilon(0.25));
  }
}

TEST_CASE("call draw: long calls, a price of 0 and sampled intervals time each call", "[draw]") {
  CallDraw draw;
  run(draw, 1, kCalls, [](std::uint64_t n) { return n == 0 ? 1'000'000'000 : 100; });  // a long wait at the start
  const std::uint64_t resting = draw.resting();
  CHECK(resting > kCalls / 3);
  draw.time_next(1000);
  Nanoseconds before = draw.sum();
  run(draw, 1'000'000'000, 1000, [](std::uint64_t) { return 100; });
  CHECK((draw.resting() == resting && draw.sum() == before + 100'000));
  run(draw, 2'000'000'000, 1000, [](std::uint64_t) { return 1'000'000; });  // the draw ends
  const std::uint64_t then = draw.resting();
  before = draw.sum();
  const Nanoseconds sum = run(draw, 4'000'000'000, 1000, [](std::uint64_t) { return 1'000'000; });
  CHECK((draw.resting() == then && draw.sum() == before + sum));
  CallDraw all;
  for (int n = 0; n < 300'000; ++n) {
    REQUIRE(all.weigh_next() == 1);
    if (all.add(1, 10)) all.draw_next(1, 10, 20 * n, 0);
  }
  CHECK((all.sum() == 3'000'000 && all.error() == 0));
}

TEST_CASE("call draw: rare long calls keep the error low, at the price of the budget", "[draw]") {
  double worst = 0;
  for (int round = 0; round < 50; ++round) {
    CallDraw draw;
    const Nanoseconds sum = run(draw, 1'000'000'007LL * (round + 1), 4'000'000,
                                [](std::uint64_t n) { return n % 20'000 == 19'999 ? 5'000'000 : 50; });
    CHECK(draw.error() < 0.15 * static_cast<double>(draw.sum()));
    worst = std::max(worst, std::abs(static_cast<double>(draw.sum() - sum)) / static_cast<double>(sum));
    CHECK(draw.resting() > 0);
  }
  CHECK(worst < 0.3);
}

TEST_CASE("local draw: the sum is right in calls of any period, and long calls are all timed", "[draw]") {
  for (const int period : {1, 2, 64, 100}) {
    LocalDraw draw;
    double sum = 0, whole = 0;
    std::uint64_t timed = 0, stood_for = 0;
    constexpr int kCalls = 2'000'000;
    for (int n = 0; n < kCalls; ++n) {
      const Nanoseconds time = n % period == 0 ? 1000 : 30;
      const std::uint32_t weight = draw.weigh_next();
      whole += static_cast<double>(time);
      if (weight == 0) continue;
      ++timed;
      stood_for += weight;
      sum += static_cast<double>(weight * time);
      draw.draw_next(time);
    }
    CHECK(timed < kCalls / 50);
    CHECK(static_cast<double>(stood_for) == Approx(kCalls).epsilon(0.02));
    CHECK(sum == Approx(whole).epsilon(0.05));
  }
  LocalDraw draw;
  for (int n = 0; n < 1000; ++n) {
    REQUIRE(draw.weigh_next() == 1);
    draw.draw_next(10'000);
  }
  // A call that never ends, because the program leaves it by a jump, is followed by another sample.
  while (draw.weigh_next() == 0) {
  }
  CHECK(draw.weigh_next() == 1);
}

// SPDX-License-Identifier: BSD-3-Clause
// Simulates the sequential test of a rota: how often a candidate without gain wins, how often one with a gain does, and
// after how many turns. `test_core_judge [table]` prints the table of docs/explanation/learning.md.
#include "core/learning/judge.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <vector>

#include "core/base/text.hpp"

using namespace latecomer::core;

namespace {

enum class Noise { normal, outliers, exponential };

struct Rates {
  double wins = 0, turns = 0;
};

/// Runs of the test on a candidate that takes 1 - gain of the other's time. `deviation`: of one call, as a share.
Rates simulated(double gain, double deviation, Noise noise, int runs) {
  SplitMix64 random(1);
  const auto normal = [&] {
    return std::sqrt(-2 * std::log(1 - random.uniform())) * std::cos(2 * std::numbers::pi * random.uniform());
  };
  const auto time = [&](double mean) {
    if (noise == Noise::exponential) return mean * (1 - deviation * std::log(1 - random.uniform()));
    const double slow = noise == Noise::outliers && random.uniform() < 0.1 ? 1 + 2 * random.uniform() : 1;
    return mean * slow * std::exp(deviation * normal());
  };
  Rates out;
  for (int run = 0; run < runs; ++run) {
    std::vector<float> x, y, next_x, next_y;
    const auto add = [&](double mean, std::vector<float>& times, std::vector<float>& next) {
      const double took = time(mean), computing = 3e6 * std::exp(0.1 * normal());
      times.push_back(static_cast<float>(took));
      next.push_back(static_cast<float>(took + computing));
    };
    TrialVerdict verdict = TrialVerdict::open;
    while (verdict == TrialVerdict::open) {
      add(1e6 * (1 - gain), x, next_x);
      add(1e6, y, next_y);
      verdict = judge_candidate({x, next_x}, {y, next_y}, 32);
    }
    out.wins += verdict == TrialVerdict::wins;
    out.turns += static_cast<double>(x.size());
  }
  out.wins /= runs;
  out.turns /= runs;
  return out;
}

constexpr Noise kNoises[] = {Noise::normal, Noise::outliers, Noise::exponential};
constexpr double kDeviations[] = {0.02, 0.05, 0.2, 0.5};

}  // namespace

TEST_CASE("judge: error rates", "[judge]") {
  for (const Noise noise : kNoises)
    for (const double deviation : kDeviations) {
      INFO("noise " << static_cast<int>(noise) << ", deviation " << deviation);
      CHECK(simulated(0, deviation, noise, 2000).wins < 0.05);
      CHECK(simulated(-0.1, deviation, noise, 2000).wins < 0.02);
      CHECK(simulated(0.5, deviation, noise, 500).wins > 0.95);
    }
  for (const double deviation : {0.02, 0.05}) {
    const Rates clear = simulated(0.2, deviation, Noise::normal, 2000),
                small = simulated(0.1, deviation, Noise::normal, 2000);
    CHECK(clear.wins > 0.99);
    CHECK(clear.turns < 4);
    CHECK(small.wins > 0.98);
    CHECK(small.turns > clear.turns);
  }
}

TEST_CASE("judge: a call that makes the next late is no gain", "[judge]") {
  // The candidate ends sooner, but the rank that is late in the next call leaves it later.
  const std::vector<float> x = {800, 810, 790, 805, 795}, y = {1000, 1010, 990, 1005, 995},
                           next_x = {5500, 5510, 5490, 5505, 5495}, next_y = {5000, 5010, 4990, 5005, 4995};
  CHECK(judge_candidate({x, {}}, {y, {}}, 32) == TrialVerdict::wins);
  CHECK(judge_candidate({x, next_x}, {y, next_y}, 32) == TrialVerdict::loses);
  CHECK(judge_candidate({y, next_y}, {y, next_x}, 32) == TrialVerdict::wins);
}

TEST_CASE("judge: of two candidates, a clear difference until the next call decides", "[judge]") {
  const std::vector<float> x = {900, 910, 890, 905}, y = {880, 870, 890, 875}, sooner = {2000, 2100, 1900, 2050},
                           later = {2500, 2400, 2600, 2450}, varied = {2000, 3000, 1500, 3500};
  CHECK(is_faster({x, sooner}, {y, later}));
  CHECK_FALSE(is_faster({y, later}, {x, sooner}));
  CHECK(is_faster({y, varied}, {x, sooner}));
  CHECK(is_faster({y, {}}, {x, {}}));
}

TEST_CASE("judge: few calls stay open, unless one algorithm is far off", "[judge]") {
  const std::vector<float> fast = {500, 510}, slow = {1000, 1010}, none;
  CHECK(judge_candidate({none, none}, {none, none}, 32) == TrialVerdict::open);
  CHECK(judge_candidate({fast, fast}, {slow, slow}, 32) == TrialVerdict::open);
  CHECK(judge_candidate({slow, slow}, {fast, fast}, 32) == TrialVerdict::loses);
}

TEST_CASE("judge: the table", "[.][table]") {
  std::printf("| deviation of a call | no gain | 3%% | 10%% | 20%% | 30%% | 50%% |\n|---|---|---|---|---|---|---|\n");
  for (const double deviation : kDeviations) {
    std::printf("| %.0f%% |", 100 * deviation);
    for (const double gain : {0.0, 0.03, 0.1, 0.2, 0.3, 0.5}) {
      const Rates r = simulated(gain, deviation, Noise::normal, 20'000);
      std::printf(" %.1f%%, %.0f |", 100 * r.wins, r.turns);
    }
    std::printf("\n");
  }
}

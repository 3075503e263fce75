// SPDX-License-Identifier: BSD-3-Clause
// Which problems can be planned, and the plans of those.
#include "core/algorithms/clairvoyant/planner.hpp"

#include <algorithm>
#include <string>
#include <tuple>

namespace latecomer::core::clairvoyant {

void plan_exchange(const Problem& problem, const EmitExchange& emit);

namespace {

/// "" if the problem can be planned.
std::string mistake(const Problem& problem) {
  constexpr Nanoseconds kLatest = INT64_MAX / 8;  // sums of times stay in range
  // Derived: a plan takes 2 bits per cell, so 1 GiB at this limit. Larger problems are refused.
  constexpr std::int64_t kCells = std::int64_t{1} << 32;
  if (problem.arrivals.empty()) return "no ranks";
  if (problem.segments < 0) return "segments: " + std::to_string(problem.segments) + " is negative";
  if (problem.ranks() * std::int64_t{problem.segments} > kCells)
    return "ranks times segments: more than " + std::to_string(kCells);
  if (problem.root < 0 || problem.root >= problem.ranks())
    return "root: expected a rank below " + std::to_string(problem.ranks()) + ", got " + std::to_string(problem.root);
  if (problem.round_ns < 1 || problem.round_ns > kLatest / (problem.ranks() + problem.segments + 64))
    return "round time: expected 1 ns to " + std::to_string(kLatest / (problem.ranks() + problem.segments + 64)) +
           " ns, got " + std::to_string(problem.round_ns);
  for (const Nanoseconds a : problem.arrivals)
    if (a < 0 || a > kLatest)
      return "arrivals: expected 0 to " + std::to_string(kLatest) + " ns, got " + std::to_string(a);
  return "";
}

}  // namespace

std::string plan(const Problem& problem, const Emit& emit, Generate& generate) {
  if (auto what = mistake(problem); !what.empty()) return what;
  generate(problem, emit);
  return "";
}

Result<std::vector<Message>> plan(const Problem& problem, Generate& generate) {
  std::vector<Message> out;
  if (auto what = plan(
          problem, [&](std::span<const Message> round) { out.insert(out.end(), round.begin(), round.end()); },
          generate);
      !what.empty())
    return Error{std::move(what)};
  return out;
}

std::string plan_everywhere(const Problem& problem, const EmitExchange& emit) {
  if (auto what = mistake(problem); !what.empty()) return what;
  plan_exchange(problem, emit);
  return "";
}

void sort_messages(std::vector<Message>& messages) {
  std::sort(messages.begin(), messages.end(),
            [](const Message& x, const Message& y) { return std::tie(x.round, x.dst) < std::tie(y.round, y.dst); });
}

}  // namespace latecomer::core::clairvoyant

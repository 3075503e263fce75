// SPDX-License-Identifier: BSD-3-Clause
// The plan of the winners of an earlier run.
#include "core/learning/learned.hpp"

#include <algorithm>
#include <map>

#include "core/algorithms/algorithm.hpp"
#include "core/learning/changed.hpp"

namespace latecomer::core {

Plan plan_of_learned(const std::vector<Learned>& learned) {
  std::map<std::uint64_t, std::vector<const Learned*>> by_signature;
  for (const Learned& one : learned)
    if (one.algorithm >= 0) by_signature[one.signature].push_back(&one);
  Plan plan;
  const auto index = [](auto& all, const auto& one) {
    if (one.empty()) return -1;
    const auto known = std::ranges::find(all, one);
    const auto at = static_cast<std::int32_t>(known - all.begin());
    if (known == all.end()) all.push_back(one);
    return at;
  };
  for (const auto& entry : by_signature) {
    const auto& sites = entry.second;
    const Learned& first = *sites.front();
    const auto all = [&](auto same) { return std::ranges::all_of(sites, [&](const Learned* s) { return same(*s); }); };
    if (!all([&](const Learned& s) {
          return s.algorithm == first.algorithm && s.segments == first.segments && s.overlap == first.overlap;
        }))
      continue;
    const bool same_pattern = all([&](const Learned& s) {
      return s.pattern.empty() == first.pattern.empty() && (s.pattern.empty() || !moved(first.pattern, s.pattern));
    });
    const bool same_sizes = all([&](const Learned& s) { return !resized(first.sizes, s.sizes); });
    const Algorithm& algorithm = algorithm_at(first.algorithm);
    if (algorithm.needs_sizes && (!same_sizes || first.sizes.empty())) continue;
    PlanEntry& e = plan.entries.emplace_back();
    e.signature = entry.first;
    e.algorithm = first.algorithm;
    e.segments = first.segments;
    e.overlap = first.overlap;
    e.remembered = 1;
    if (algorithm.uses_pattern() && same_pattern) e.pattern = index(plan.patterns, first.pattern);
    if (same_sizes) e.sizes = index(plan.sizes, first.sizes);
  }
  return plan;
}

}  // namespace latecomer::core

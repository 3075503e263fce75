// SPDX-License-Identifier: BSD-3-Clause
// The decision of a slot: the algorithm, and the arrivals and block sizes of the plan.
#include "core/learning/slot.hpp"

#include <algorithm>

#include "core/learning/changed.hpp"

namespace latecomer::core {

Runner* Rota::find_runner(int algorithm) {
  const auto at = std::ranges::find(runners, algorithm, &Runner::algorithm);
  return at == runners.end() ? nullptr : &*at;
}

Decision decide_planned(const LearningTerms& terms, const Slot& slot, int algorithm, int segments) {
  return decide_planned_call(
      terms.policy, slot.signature, terms.ranks,
      {.algorithm = algorithm, .segments = segments, .sizes = slot.expected.sizes.empty() ? -1 : 0});
}

bool is_allowed(const LearningTerms& terms, const Slot& slot, int algorithm, int segments) {
  return index_of(decide_planned(terms, slot, algorithm, segments).algorithm) == algorithm;
}

bool hold_pattern(Slot& slot, int measured) {
  constexpr int kMostHeld = 2;  // derived: the epochs until the logs of a plan are here
  const bool holds = measured < kFirstMeasured && slot.held < kMostHeld;
  slot.held = holds ? slot.held + 1 : 0;
  return holds;
}

void settle_slot(Slot& slot, int algorithm, int segments, bool with_pattern, Reason reason) {
  slot.reason = reason;
  const auto serves = [&](auto use) {
    return (algorithm >= 0 && use(algorithm_at(algorithm))) ||
           std::ranges::any_of(slot.rota.runners,
                               [&](const Runner& r) { return r.algorithm >= 0 && use(algorithm_at(r.algorithm)); });
  };
  std::vector<Nanoseconds> pattern;
  if (with_pattern && !slot.arrivals.forecast.uncertain() &&
      serves([](const Algorithm& a) { return a.uses_pattern(); }))
    pattern = slot.arrivals.forecast.offsets;
  const bool moves = !pattern.empty() && !slot.announced.empty() && moved(slot.announced, pattern);
  const bool kept = moves && algorithm == slot.algorithm && segments == slot.segments && !slot.rota.running() &&
                    hold_pattern(slot, slot.current.count());
  const bool same_pattern = pattern.empty() == slot.announced.empty() && (!moves || kept);
  // Algorithms that need the block sizes read them from the plan.
  std::vector<Bytes> sizes;
  if (!slot.sizes_vary() && serves([](const Algorithm& a) { return a.needs_sizes || a.uses_pattern(); }))
    sizes = slot.expected.sizes;
  const bool same_sizes = !resized(slot.announced_sizes, sizes);
  if (algorithm == slot.algorithm && segments == slot.segments && same_pattern && same_sizes) return;
  if (!same_pattern) slot.announced = std::move(pattern);
  if (!same_sizes) slot.announced_sizes = std::move(sizes);
  slot.algorithm = algorithm;
  slot.segments = segments;
  slot.current.clear();
  slot.counts_from = UINT64_MAX;
  slot.changed = true;
}

}  // namespace latecomer::core

// SPDX-License-Identifier: BSD-3-Clause
// What has been learned at the end of a job: the plan in force, with the verdicts of its trials.
#include <algorithm>

#include "core/learning/learner.hpp"

namespace latecomer::core {

/// What won in this slot before the trial, or in the earlier run; native if nothing did.
Learner::Served Learner::earlier_winner(const Slot& slot) const {
  const auto lost = [&](int algorithm, int segments) {
    return std::ranges::any_of(slot.candidates, [&](const Candidate& c) {
      return c.lost && c.algorithm == algorithm && c.segments == segments;
    });
  };
  if (slot.proven >= 0 && !(slot.sizes_vary() && algorithm_at(slot.proven).needs_sizes)) {
    Served out{&slot, slot.proven, slot.proven_segments, slot.overlap, {}, {}};
    const Algorithm& algorithm = algorithm_at(slot.proven);
    if (algorithm.uses_pattern() && !slot.forecast.uncertain()) out.pattern = slot.forecast.offsets;
    if (!slot.sizes_vary() && (algorithm.needs_sizes || algorithm.uses_pattern())) out.sizes = slot.expected.sizes;
    return out;
  }
  for (const PlanEntry& e : before_.entries) {
    if (e.signature != slot.hash || e.algorithm < 0 || e.trial != 0 || lost(e.algorithm, e.segments)) continue;
    if (!decide_as(policy_, slot.signature, ranks_, e).algorithm) continue;
    Served out{&slot, e.algorithm, e.segments, e.overlap != 0, {}, {}};
    if (e.pattern >= 0) out.pattern = before_.patterns[static_cast<std::size_t>(e.pattern)];
    if (e.sizes >= 0) out.sizes = before_.sizes[static_cast<std::size_t>(e.sizes)];
    return out;
  }
  if (slot.why != Why::unknown) return {&slot, -1, 0, true, {}, {}};
  const Decision alone = decide(policy_, slot.signature, ranks_);
  return {&slot, index_of(alone.algorithm), alone.segments, alone.overlap, {}, {}};
}

/// `words`: what the report adds to the reason, if the slot is not served as announced.
Learner::Served Learner::verdict_on(const Slot& slot, const char*& words) const {
  words = "";
  const Served announced{&slot, slot.algorithm, slot.segments, slot.overlap, slot.announced, slot.announced_sizes};
  bool open = false;
  if (slot.on_trial && slot.algorithm >= 0) {
    if (slot.current.enough() && wins(slot)) return words = "; the trial had won when the job ended", announced;
    open = !slot.current.enough();
    words = open ? "; the job ended before the verdict" : "; the trial had lost when the job ended";
    if (!open) return {&slot, -1, 0, slot.overlap, {}, {}};
  } else if (slot.algorithm < 0) {
    open = slot.why == Why::unknown || slot.why == Why::nothing_seen || slot.why == Why::no_sizes ||
           slot.why == Why::measuring || slot.why == Why::no_budget;
  }
  if (!open) return announced;
  const Served out = earlier_winner(slot);
  if (out.algorithm >= 0 && slot.why != Why::unknown) words = "; what won earlier stays until the verdict";
  return out;
}

Learner::Outcome Learner::outcome() const {
  Outcome out;
  out.reports = reports();
  std::vector<Served> all;
  for (const Slot* slot : decided()) {
    const char* words = "";
    all.push_back(verdict_on(*slot, words));
    SlotReport& report = out.reports[all.size() - 1];
    report.algorithm = all.back().algorithm, report.reason += words;
  }
  if (all.empty()) out.plan = before_, out.says_anything = !before_.empty();
  else out.plan = plan_of(all, out.says_anything);
  return out;
}

}  // namespace latecomer::core

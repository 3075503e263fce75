// SPDX-License-Identifier: BSD-3-Clause
// The results of learning at the end of a job: the plan in force, with the verdicts of its trials.
#include <algorithm>
#include <map>

#include "core/learning/changed.hpp"
#include "core/learning/learner.hpp"

namespace latecomer::core {

/// The last winner of this slot, in this run or in the earlier one. Without a winner: native, or what the ranks decide
/// without a plan if the slot is undecided.
Learner::Served Learner::earlier_winner(const Slot& slot) const {
  if (slot.proven >= 0 && !(slot.sizes_vary() && algorithm_at(slot.proven).needs_sizes)) {
    Served out{&slot, slot.proven, slot.proven_segments, slot.overlap, {}, {}};
    const Algorithm& algorithm = algorithm_at(slot.proven);
    if (algorithm.uses_pattern() && !flat(slot)) out.pattern = slot.forecast.offsets;
    if (!slot.sizes_vary() && (algorithm.needs_sizes || algorithm.uses_pattern())) out.sizes = slot.expected.sizes;
    return out;
  }
  if (slot.why != Why::unknown) return {&slot, -1, 0, true, {}, {}};
  const Decision alone = decide(policy_, slot.signature, ranks_);
  return {&slot, index_of(alone.algorithm), alone.segments, alone.overlap, {}, {}};
}

/// The algorithm that a later run starts with. `words`: the addition to the reason if it is not the announced one.
Learner::Served Learner::verdict_on(const Slot& slot, const char*& words) const {
  words = "";
  const Served announced{&slot, slot.algorithm, slot.segments, slot.overlap, slot.announced, slot.announced_sizes};
  if (slot.rota.running()) {
    if (const int won = winner_of(slot)) {
      const Runner& winner = slot.rota.runners[static_cast<std::size_t>(won)];
      words = "; it had won when the job ended";
      return {&slot, winner.algorithm, winner.segments, slot.overlap, slot.announced, slot.announced_sizes};
    }
    words = "; the job ended before the verdict";
    return slot.algorithm >= 0 ? announced : earlier_winner(slot);
  }
  if (slot.algorithm >= 0 || (slot.why != Why::unknown && slot.why != Why::nothing_seen && slot.why != Why::no_sizes &&
                              slot.why != Why::measuring && slot.why != Why::no_budget))
    return announced;
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
    const Served& served = all.back();
    SlotReport& report = out.reports[all.size() - 1];
    report.algorithm = served.algorithm;
    report.reason += words;
    if (served.algorithm < 0 || !slot->rule || slot->rule->use.kind != Use::Kind::automatic) continue;
    Learned& one = out.learned.emplace_back();
    one.signature = slot->hash;
    one.site = slot->site;
    one.calls = slot->calls;
    one.algorithm = served.algorithm;
    one.segments = served.segments;
    one.overlap = served.overlap;
    if (!flat(*slot)) one.pattern = slot->forecast.offsets;
    else if (slot->why == Why::remembered && slot->earlier) one.pattern = slot->earlier->pattern;
    one.sizes.assign(served.sizes.begin(), served.sizes.end());
    const Samples* its = &slot->current;
    for (const Runner& r : slot->rota.runners)
      if (r.algorithm == served.algorithm) its = &r.measured;
    const Learned* before = slot->earlier && slot->earlier->algorithm == one.algorithm ? &*slot->earlier : nullptr;
    one.measured_ns = its->enough() ? median_of(*its) : before ? before->measured_ns : -1;
    one.native_measured_ns = slot->native.enough() ? native_measured(*slot) : before ? before->native_measured_ns : -1;
  }
  // Call sites that this run has not reached keep the winners of the earlier run.
  if (all.empty()) {
    out.plan = before_;
    out.says_anything = !before_.empty();
  } else {
    out.plan = plan_of(all, out.says_anything);
    keep_unseen(out.plan, out.says_anything);
  }
  return out;
}

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

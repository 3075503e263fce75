// SPDX-License-Identifier: BSD-3-Clause
// Decides which slots may share an entry of the plan, and adds patterns and block sizes once.
#include "core/learning/plan_writer.hpp"

#include <algorithm>
#include <map>

#include "core/learning/changed.hpp"
#include "core/learning/forecast.hpp"
#include "core/learning/rota.hpp"

namespace latecomer::core {
namespace {

ServedSlot serve_without_rota(const Slot& slot) {
  return {&slot, slot.algorithm, slot.segments, slot.overlap, slot.announced, slot.announced_sizes};
}

/// The last winner of this slot, in this run or in the earlier one. Without a winner: native, or the decision of
/// the ranks without a plan if the slot is undecided.
ServedSlot serve_earlier_winner(const LearningTerms& terms, const Slot& slot) {
  if (slot.proven >= 0 && !(slot.sizes_vary() && algorithm_at(slot.proven).needs_sizes)) {
    ServedSlot out{&slot, slot.proven, slot.proven_segments, slot.overlap, {}, {}};
    const Algorithm& algorithm = algorithm_at(slot.proven);
    if (algorithm.uses_pattern() && !ignores_arrivals(slot)) out.pattern = slot.arrivals.forecast.offsets;
    if (!slot.sizes_vary() && (algorithm.needs_sizes || algorithm.uses_pattern())) out.sizes = slot.expected.sizes;
    return out;
  }
  if (slot.reason != Reason::unknown) return {&slot, -1, 0, true, {}, {}};
  const Decision alone = decide_call(terms.policy, slot.signature, terms.ranks);
  return {&slot, index_of(alone.algorithm), alone.segments, alone.overlap, {}, {}};
}

template <typename Rows, typename Row>
std::int32_t index_in(Rows& rows, const Row& wanted) {
  if (wanted.empty()) return -1;
  const auto known = std::ranges::find_if(rows, [&](const auto& row) { return std::ranges::equal(row, wanted); });
  const auto at = static_cast<std::int32_t>(known - rows.begin());
  if (known == rows.end()) rows.emplace_back(wanted.begin(), wanted.end());
  return at;
}

}  // namespace

ServedSlot serve_decided(const Slot& slot) {
  ServedSlot out = serve_without_rota(slot);
  if (!slot.rota.running()) return out;
  out.rota = &slot.rota;
  out.calls = slot.rota.calls;
  out.rounds = slot.rota.round;
  return out;
}

ServedSlot serve_later_run(const LearningTerms& terms, const Slot& slot, const char*& words) {
  words = "";
  const ServedSlot decided = serve_without_rota(slot);
  if (slot.rota.running()) {
    if (const int won = find_winner(slot.rota, terms.policy.objective)) {
      const Runner& winner = slot.rota.runners[static_cast<std::size_t>(won)];
      words = "; it had won when the job ended";
      return {&slot, winner.algorithm, winner.segments, slot.overlap, slot.announced, slot.announced_sizes};
    }
    words = "; the job ended before the verdict";
    return slot.algorithm >= 0 ? decided : serve_earlier_winner(terms, slot);
  }
  if (slot.algorithm >= 0 ||
      (slot.reason != Reason::unknown && slot.reason != Reason::nothing_seen && slot.reason != Reason::no_sizes &&
       slot.reason != Reason::measuring && slot.reason != Reason::no_budget))
    return decided;
  const ServedSlot out = serve_earlier_winner(terms, slot);
  if (out.algorithm >= 0 && slot.reason != Reason::unknown) words = "; what won earlier stays until the verdict";
  return out;
}

PlanEntry PlanWriter::make_turn(const ServedSlot& served, int algorithm, int segments) {
  PlanEntry e;
  e.signature = served.slot->hash;
  e.algorithm = algorithm;
  if (algorithm < 0) return e;
  const Algorithm& a = algorithm_at(algorithm);
  e.segments = segments;
  e.overlap = served.overlap;
  e.edge = terms_.edges && served.slot->edged >= kEnoughMeasured && a.uses_pattern();
  if (a.uses_pattern()) e.pattern = index_in(plan.patterns, served.pattern);
  if (a.needs_sizes || a.uses_pattern()) e.sizes = index_in(plan.sizes, served.sizes);
  return e;
}

PlanEntry PlanWriter::make_entry(const ServedSlot& served) {
  PlanEntry e = make_turn(served, served.algorithm, served.segments);
  e.remembered = served.slot->reason == Reason::remembered;
  if (!served.rota) return e;
  e.first_turn = static_cast<std::int32_t>(plan.turns.size());
  e.turns = static_cast<std::uint16_t>(served.rota->runners.size());
  e.trial = static_cast<std::uint16_t>(std::min<int>(served.calls, UINT16_MAX));
  e.round = static_cast<std::uint16_t>(served.rounds);
  for (const Runner& r : served.rota->runners) plan.turns.push_back(make_turn(served, r.algorithm, r.segments));
  return e;
}

void PlanWriter::add_slot(const ServedSlot& served) {
  const PlanEntry e = make_entry(served);
  const Decision alone = decide_call(terms_.policy, served.slot->signature, terms_.ranks),
                 planned = decide_planned_call(terms_.policy, served.slot->signature, terms_.ranks, e);
  const bool trivial = e.turns == 0 && e.pattern < 0 && e.sizes < 0 && !e.edge &&
                       alone.algorithm == planned.algorithm &&
                       (!planned.algorithm || (alone.segments == planned.segments && alone.overlap == planned.overlap));
  says_anything = says_anything || !trivial;
  plan.entries.push_back(e);
}

void PlanWriter::add_slots(const std::vector<ServedSlot>& all) {
  if (table_.period() != 0) {
    plan.period = table_.period();
    plan.first = table_.first();
    for (const ServedSlot& served : all) add_slot(served);
    return;
  }
  // Without a period, the site of the next call is unknown. So sites with one signature need one decision.
  struct Shared {
    const ServedSlot* chosen;
    bool agree = true, remembered = true, same_pattern = true;
    int calls = 0, rounds = 0;
  };
  const auto same_rota = [](const Rota* x, const Rota* y) {
    const auto same = [](const Runner& a, const Runner& b) {
      return a.algorithm == b.algorithm && a.segments == b.segments;
    };
    return (x && y) ? std::ranges::equal(x->runners, y->runners, same) : x == y;
  };
  std::map<std::uint64_t, Shared> by_signature;
  for (const ServedSlot& one : all) {
    auto& [chosen, agree, remembered, same_pattern, calls, rounds] =
        by_signature.try_emplace(one.slot->hash, Shared{&one}).first->second;
    calls += one.calls;
    rounds += one.rounds;  // the rota of each site needs enough calls
    const bool same = chosen->algorithm == one.algorithm && chosen->segments == one.segments &&
                      chosen->overlap == one.overlap && !resized(chosen->sizes, one.sizes) &&
                      same_rota(chosen->rota, one.rota);
    same_pattern = same_pattern && chosen->pattern.empty() == one.pattern.empty() &&
                   (chosen->pattern.empty() || !moved(chosen->pattern, one.pattern));
    remembered = remembered && one.slot->reason == Reason::remembered;
    agree = agree && same;
    if (one.slot->calls > chosen->slot->calls) chosen = &one;
  }
  for (const auto& [hash, found] : by_signature) {
    // If an earlier run found the winner, both sites have used it without a pattern since the first call
    // (plan_of_learned).
    if (!found.agree || !(found.same_pattern || found.remembered)) continue;
    ServedSlot served = *found.chosen;
    if (!found.same_pattern) served.pattern = {};
    served.calls = found.calls;
    served.rounds = found.rounds;
    add_slot(served);
  }
}

void PlanWriter::add_unseen(const Plan& before) {
  if (plan.period != 0 || before.period != 0 || before.empty()) return;
  const auto copy_row = [](int index, const auto& from, auto& to) {
    if (index < 0) return -1;
    to.push_back(from[static_cast<std::size_t>(index)]);
    return static_cast<int>(to.size()) - 1;
  };
  for (PlanEntry e : before.entries) {
    if (table_.has_signature(e.signature)) continue;
    e.pattern = copy_row(e.pattern, before.patterns, plan.patterns);
    e.sizes = copy_row(e.sizes, before.sizes, plan.sizes);
    plan.entries.insert(std::ranges::lower_bound(plan.entries, e.signature, {}, &PlanEntry::signature), e);
    says_anything = true;
  }
}

}  // namespace latecomer::core

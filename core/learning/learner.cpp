// SPDX-License-Identifier: BSD-3-Clause
// The announcements of the leader: plans, epochs and rests.
#include "core/learning/learner.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/learning/changed.hpp"

namespace latecomer::core {
namespace {

// Nanoseconds of an epoch while some slot has no verdict, if that is less than Sequence::kSteadyEpoch calls. A verdict
// takes four epochs. A boundary costs some 50 us and 1 us per rank and call. Derived: 50 us are 1% of 5 ms. A shorter
// epoch spends more time on boundaries, a longer one delays verdicts.
constexpr double kLearningEpoch = 5e6;
// Nanoseconds of an epoch after all verdicts. The leader notices a new pattern two epochs after it begins. Derived:
// 50 us are 0.05% of 100 ms.
constexpr double kSettledEpoch = 1e8;
// The least number of calls of a logged epoch between two rests; with more slots, one call per slot. One late arrival
// in these calls ends the rest. Derived: 32 calls are 0.8% of the 4,096 of the longest rest.
constexpr std::uint64_t kGlance = 32;
// Where ranks wait for the leader at boundaries: the share of time that they may wait, except at the first boundaries,
// and the most calls between two boundaries. A larger share costs more, a smaller share delays learning. The limit on
// calls keeps one long wait from ending the learning.
constexpr double kWaiting = 0.01, kMostBetweenWaits = 65'536;

}  // namespace

Learner::Learner(const Policy& policy, int ranks, SiteMatch site_matches, std::vector<int> hosts, std::size_t memory)
    : policy_(policy), ranks_(ranks), hosts_(std::move(hosts)), site_matches_(std::move(site_matches)) {
  const std::size_t each = sizeof(Slot) + static_cast<std::size_t>(ranks) *
                                              (2 * static_cast<std::size_t>(policy.predictor_window) + 8) *
                                              sizeof(Nanoseconds);
  most_slots_ = std::clamp<std::size_t>(memory / each, 4, kHistory / 2);
}

PlanEntry Learner::entry_for(const Served& served, Plan& plan) const {
  const auto index = [](auto& all, const auto& one) {
    if (one.empty()) return -1;
    const auto known = std::ranges::find_if(all, [&](const auto& row) { return std::ranges::equal(row, one); });
    const auto at = static_cast<std::int32_t>(known - all.begin());
    if (known == all.end()) all.emplace_back(one.begin(), one.end());
    return at;
  };
  const auto entry = [&](int algorithm, int segments) {
    PlanEntry e;
    e.signature = served.slot->hash;
    e.algorithm = algorithm;
    if (algorithm < 0) return e;
    const Algorithm& a = algorithm_at(algorithm);
    e.segments = segments;
    e.overlap = served.overlap;
    e.edge = edges_ && served.slot->edged >= kEnough && a.uses_pattern();
    if (a.uses_pattern()) e.pattern = index(plan.patterns, served.pattern);
    if (a.needs_sizes || a.uses_pattern()) e.sizes = index(plan.sizes, served.sizes);
    return e;
  };
  PlanEntry e = entry(served.algorithm, served.segments);
  e.remembered = served.slot->why == Why::remembered;
  if (!served.rota || !served.rota->running()) return e;
  e.first_turn = static_cast<std::int32_t>(plan.turns.size());
  e.turns = static_cast<std::uint16_t>(served.rota->runners.size());
  e.trial = static_cast<std::uint16_t>(std::min<int>(served.calls, UINT16_MAX));
  e.round = static_cast<std::uint16_t>(served.rounds);
  for (const Runner& r : served.rota->runners) plan.turns.push_back(entry(r.algorithm, r.segments));
  return e;
}

Plan Learner::plan_of(const std::vector<Served>& all, bool& says_anything) const {
  Plan plan;
  const auto add = [&](const Served& served) {
    const PlanEntry e = entry_for(served, plan);
    const Decision alone = decide(policy_, served.slot->signature, ranks_),
                   planned = decide_as(policy_, served.slot->signature, ranks_, e);
    const bool trivial =
        e.turns == 0 && e.pattern < 0 && e.sizes < 0 && !e.edge && alone.algorithm == planned.algorithm &&
        (!planned.algorithm || (alone.segments == planned.segments && alone.overlap == planned.overlap));
    says_anything = says_anything || !trivial;
    plan.entries.push_back(e);
  };
  if (!slots_.empty()) {
    plan.period = slots_.size();
    plan.first = first_;
    for (const Served& served : all) add(served);
    return plan;
  }
  // Without a period, the site of the next call is unknown. So sites with one signature need one decision.
  struct Shared {
    const Served* chosen;
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
  for (const Served& one : all) {
    auto& [chosen, agree, remembered, same_pattern, calls, rounds] =
        by_signature.try_emplace(one.slot->hash, Shared{&one}).first->second;
    calls += one.calls;
    rounds += one.rounds;  // the rota of each site needs enough calls
    const bool same = chosen->algorithm == one.algorithm && chosen->segments == one.segments &&
                      chosen->overlap == one.overlap && !resized(chosen->sizes, one.sizes) &&
                      same_rota(chosen->rota, one.rota);
    same_pattern = same_pattern && chosen->pattern.empty() == one.pattern.empty() &&
                   (chosen->pattern.empty() || !moved(chosen->pattern, one.pattern));
    remembered = remembered && one.slot->why == Why::remembered;
    agree = agree && same;
    if (one.slot->calls > chosen->slot->calls) chosen = &one;
  }
  for (const auto& [hash, found] : by_signature) {
    // If an earlier run found the winner, both sites have used it without a pattern since the first call
    // (plan_of_learned).
    if (!found.agree || !(found.same_pattern || found.remembered)) continue;
    Served served = *found.chosen;
    if (!found.same_pattern) served.pattern = {};
    served.calls = found.calls;
    served.rounds = found.rounds;
    add(served);
  }
  return plan;
}

std::vector<Learner::Slot*> Learner::decided() const {
  std::vector<Slot*> out;
  if (!slots_.empty())
    for (const auto& slot : slots_) out.push_back(slot.get());
  else
    for (const auto& [key, slot] : by_key_) out.push_back(slot.get());
  return out;
}

/// Adds the entries of an earlier run's plan for calls that this run has not seen yet.
void Learner::keep_unseen(Plan& plan, bool& says_anything) const {
  if (plan.period != 0 || before_.period != 0 || before_.empty()) return;
  const auto place = [&](std::uint64_t signature) {
    return std::ranges::lower_bound(plan.entries, signature, {}, &PlanEntry::signature);
  };
  const auto seen = [&](std::uint64_t signature) {
    return std::ranges::any_of(by_key_, [&](const auto& one) { return one.second->hash == signature; });
  };
  for (PlanEntry e : before_.entries) {
    if (seen(e.signature)) continue;
    const auto take = [](int index, const auto& from, auto& to) {
      if (index < 0) return -1;
      to.push_back(from[static_cast<std::size_t>(index)]);
      return static_cast<int>(to.size()) - 1;
    };
    e.pattern = take(e.pattern, before_.patterns, plan.patterns);
    e.sizes = take(e.sizes, before_.sizes, plan.sizes);
    plan.entries.insert(place(e.signature), e);
    says_anything = true;
  }
}

/// The number of calls of the next epoch, or 0 for the default. Slow calls get shorter epochs: a verdict on calls of
/// 10 ms should not wait for 128 calls.
std::uint64_t Learner::epoch_for(const std::vector<Slot*>& slots) const {
  const auto learning = [](const Slot* slot) {
    return slot->why == Why::measuring || slot->why == Why::tried || slot->why == Why::no_budget ||
           (!slot->native.enough() && slot->algorithm < 0);
  };
  const bool early = asked_n_ < Sequence::kSteadyEpoch && slots.empty();
  if (pace_ <= 0) return early ? Sequence::kFirstBoundary : 0;
  const double lasts =
      early || std::ranges::any_of(slots, learning) ? kLearningEpoch * (1 + ranks_ / 100.0) : kSettledEpoch;
  const double calls = std::max(static_cast<double>(Sequence::kShortestEpoch), lasts / pace_);
  if (early) return static_cast<std::uint64_t>(std::min(calls, static_cast<double>(Sequence::kFirstBoundary)));
  return calls < static_cast<double>(Sequence::kSteadyEpoch) ? static_cast<std::uint64_t>(calls) : 0;
}

Announcement Learner::with_epoch(Announcement out, Nanoseconds now, const std::vector<Slot*>& slots) {
  const Rest::Epoch epoch = rest_.next(quiet_, asked_n_, now, glance_);
  out.rest = epoch.rest;
  out.epoch = quiet_ && epoch.calls != 0 ? epoch.calls : epoch.rest ? 0 : epoch_for(slots);
  if (waited_ > 0 && pace_ > 0 && asked_n_ >= Sequence::kSteadyEpoch) {  // the first boundaries are fixed
    const auto least = static_cast<std::uint64_t>(std::ceil(std::min(waited_ / (kWaiting * pace_), kMostBetweenWaits)));
    if (least > (out.epoch ? out.epoch : Sequence::kSteadyEpoch)) out.epoch = least;
  }
  return out;
}

Announcement Learner::announce(std::uint64_t n, bool dropped, Nanoseconds now, bool hurried) {
  Announcement out;
  if (n > asked_n_ && asked_ > 0) pace_ = static_cast<double>(now - asked_) / static_cast<double>(n - asked_n_);
  asked_n_ = n;
  asked_ = now;
  budget_ = kModelBudget;
  if (quiet_ && (hurried || next_ == looked_at_))
    return with_epoch(std::move(out), now, {});  // no algorithm is in use, and no new call was seen
  if (hurried) {
    out.kind = announced_.empty() ? Announcement::Kind::none : Announcement::Kind::keep;
    return out;
  }
  looked_at_ = next_;
  find_period();
  note_shared_sizes();
  const auto slots = decided();
  for (Slot* slot : slots) {
    if (slot->calls == slot->decided_at && slot->why != Why::no_budget) continue;  // no new call
    slot->decided_at = slot->calls;
    decide_slot(*slot);
  }
  Plan& plan = out.plan;
  // A plan is announced only if it differs from the decisions that every rank takes without a plan.
  bool says_anything = false;
  if (policy_.decides_alone() || std::any_of(slots.begin(), slots.end(), [](const Slot* slot) {
        return slot->algorithm >= 0 || slot->rota.running();
      })) {
    std::vector<Served> all;
    for (const Slot* slot : slots) {
      all.push_back({slot, slot->algorithm, slot->segments, slot->overlap, slot->announced, slot->announced_sizes});
      if (!slot->rota.running()) continue;
      all.back().rota = &slot->rota;
      all.back().calls = slot->rota.calls;
      all.back().rounds = slot->rota.round;
    }
    plan = plan_of(all, says_anything);
  }
  keep_unseen(plan, says_anything);
  if (!says_anything) plan = {};
  out.kind = plan.empty()                     ? Announcement::Kind::none
             : plan == announced_ && !dropped ? Announcement::Kind::keep
                                              : Announcement::Kind::plan;
  if (out.kind == Announcement::Kind::plan) announced_ = plan;
  else if (out.kind == Announcement::Kind::none) announced_ = {};
  // If ranks call from different sites, the profile needs the log of every call.
  quiet_ = policy_.rest && !policy_.record_arrivals && out.kind == Announcement::Kind::none && !slots.empty() &&
           !divergent_ && std::all_of(slots.begin(), slots.end(), [&](const Slot* slot) { return quiet(*slot); });
  glance_ = std::clamp<std::uint64_t>(slots.size(), kGlance, Sequence::kSteadyEpoch);
  return with_epoch(std::move(out), now, slots);
}

void Learner::in_force(std::uint64_t n) {
  for (Slot* slot : decided()) {
    if (!slot->changed) continue;
    slot->changed = false;
    slot->counts_from = std::min(slot->counts_from, n);
    if (slot->rota.running()) slot->rota.counts_from = std::min(slot->rota.counts_from, n);
  }
}

std::vector<SlotReport> Learner::reports() const {
  std::vector<SlotReport> out;
  for (const Slot* slot : decided()) {
    const Slot& s = *slot;
    SlotReport r;
    r.signature = s.signature;
    r.site = s.site;
    r.calls = s.calls;
    r.algorithm = s.algorithm;
    r.rule_line = s.rule ? s.rule->line : 0;
    r.forecast = s.forecast;
    r.predicted_ns = s.modelled;
    r.native_predicted_ns = s.native_modelled;
    if (s.current.enough()) r.measured_ns = median_of(s.current);
    if (s.native.enough()) r.native_measured_ns = median_of(s.native);
    r.model_fits = model_fits(s);
    r.candidates = s.candidates;
    r.messages = s.candidate_messages;
    if (s.why == Why::unknown) r.algorithm = index_of(decide(policy_, s.signature, ranks_).algorithm);
    r.reason = why_text(s);
    if (s.sizes_vary() && s.rule && s.rule->use.kind == Use::Kind::automatic)
      r.reason += "; no tree is planned from sizes: " + sizes_text(s);
    out.push_back(std::move(r));
  }
  return out;
}

}  // namespace latecomer::core

// SPDX-License-Identifier: BSD-3-Clause
// The decision of a slot: rules, candidates of the model, trials and verdicts.
#include <algorithm>
#include <map>
#include <set>

#include "core/learning/changed.hpp"
#include "core/learning/learner.hpp"

namespace latecomer::core {
namespace {

// Medians of a few dozen calls on a busy machine differ by this much without cause. Simulated error rates: see
// Learner::kEnough.
constexpr double kWins = 0.97, kNotWorse = 1.03;

}  // namespace

void Learner::settle(Slot& slot, int algorithm, int segments, bool with_pattern, Why why, bool on_trial) {
  slot.why = why;
  slot.on_trial = on_trial;
  std::vector<Nanoseconds> pattern;
  if (algorithm >= 0 && with_pattern && algorithm_at(algorithm).uses_pattern() && !slot.forecast.uncertain())
    pattern = slot.forecast.offsets;
  const bool same_pattern =
      pattern.empty() == slot.announced.empty() && (pattern.empty() || !moved(slot.announced, pattern));
  // What is built on sizes has them from the plan.
  std::vector<Bytes> sizes;
  if (algorithm >= 0 && !slot.sizes_vary() &&
      (algorithm_at(algorithm).needs_sizes || algorithm_at(algorithm).uses_pattern()))
    sizes = slot.expected.sizes;
  const bool same_sizes = !resized(slot.announced_sizes, sizes);
  if (algorithm == slot.algorithm && segments == slot.segments && same_pattern && same_sizes) return;
  if (!same_pattern) slot.announced = std::move(pattern);
  if (!same_sizes) slot.announced_sizes = std::move(sizes);
  slot.algorithm = algorithm;
  slot.segments = segments;
  slot.current.clear();
  slot.after_trial = 0;
  ++slot.round;
  slot.counts_from = UINT64_MAX;
  slot.changed = true;
}

bool Learner::wins(const Slot& slot) const {
  const double after = slot.current.median_after() / slot.native.median_after(),
               elapsed = slot.current.median_elapsed() / slot.native.median_elapsed();
  return policy_.objective == Objective::mean_elapsed ? elapsed < kWins && after < kNotWorse
                                                      : after < kWins && elapsed < kNotWorse;
}

/// What can be hidden behind the wait is no more than the wait. Below what is worth trying, or what a dispatch costs,
/// arrivals are as good as balanced.
bool Learner::slight(const Slot& slot) const {
  const auto spread = static_cast<double>(slot.forecast.spread);
  return slot.native.enough() && (spread < kDispatch || spread < (1 - kWorthTrying) * slot.native.median_after());
}

/// Of arrivals that are not foreseen: there is nothing to foresee, since all come together.
bool Learner::nearly_together(const Slot& slot) const {
  const double imbalance = slot.seen ? slot.imbalance / static_cast<double>(slot.seen) : 0;
  return imbalance < std::max(kDispatch, slot.native.enough() ? (1 - kWorthTrying) * slot.native.median_after() : 0);
}

/// Nothing is dispatched at this slot, and more observations would change nothing.
bool Learner::quiet(const Slot& slot) const {
  switch (slot.why) {
    case Why::unserved:
    case Why::no_rule:
    case Why::rule_native:
    case Why::slight:
      return slot.algorithm < 0;
    // Not to be foreseen: a pattern may be about to show, unless what there is is small.
    case Why::balanced:
    case Why::unforeseen:
      return slot.native.enough() &&
             static_cast<double>(slot.forecast.spread) < std::max(kDispatch, slot.native.median_after());
    default:
      return false;
  }
}

/// What the policy lets run in the slot where a plan says so.
Decision Learner::decision(const Slot& slot, int algorithm, int segments) const {
  PlanEntry e;
  e.algorithm = algorithm, e.segments = segments;
  e.sizes = slot.expected.sizes.empty() ? -1 : 0;
  return decide_as(policy_, slot.signature, ranks_, e);
}

bool Learner::may(const Slot& slot, int algorithm, int segments) const {
  return index_of(decision(slot, algorithm, segments).algorithm) == algorithm;
}

/// What a search has found is this slot's, as far as the policy lets it be.
void Learner::take(Slot& slot, const Candidates& found) const {
  slot.native_modelled = found.native_ns;
  slot.candidates = found.list;
  slot.left_out = found.left_out;
  slot.candidate_messages = found.messages;
  std::erase_if(slot.candidates, [&](const Candidate& c) {
    return !may(slot, c.algorithm, c.segments) || (algorithm_at(c.algorithm).background && !policy_.background_enabled);
  });
}

/// Models what may serve the slot under its forecast, candidate by candidate. False if the budget of this announcement,
/// or the slot's, is spent before all are: the rest follows at the next. `only`: nothing but that is compared with
/// native.
bool Learner::model(Slot& slot, const Algorithm* only, int segments) {
  const bool flat = slot.forecast.uncertain();
  const auto pattern_of = [&] {
    return flat ? std::vector<Nanoseconds>(static_cast<std::size_t>(ranks_), 0) : slot.forecast.offsets;
  };
  if (slot.search && (moved(slot.modelled_for, pattern_of()) || resized(slot.modelled_sizes, slot.expected.sizes)))
    slot.search.reset();
  if (!slot.search) {
    const Call call = call_of(slot.signature, ranks_);
    slot.modelled_for = pattern_of();
    slot.modelled_sizes = slot.expected.sizes;
    for (const CandidateSearch& s : searched_) {
      if (only) break;
      const Call& before = s.call();
      if (before.op != call.op || before.root != call.root || before.commutative != call.commutative ||
          before.element_bytes != call.element_bytes || size_class(before.bytes()) != size_class(call.bytes()) ||
          s.pattern().flat() != flat || resized(s.sizes(), slot.expected.sizes))
        continue;
      std::vector<Nanoseconds> its;
      its.reserve(static_cast<std::size_t>(ranks_));
      for (Rank r = 0; r < ranks_; ++r) its.push_back(s.pattern().arrival(r));
      if (!flat && moved(its, slot.modelled_for)) continue;
      take(slot, s.found());
      return true;
    }
    Parameters parameters;
    parameters.network = policy_.network, parameters.sizes = slot.expected.sizes, parameters.hosts = hosts_;
    slot.search.emplace(call, flat ? Pattern() : Pattern(slot.forecast.offsets), std::move(parameters),
                        policy_.objective);
    if (only) slot.search->only(*only, segments);
    slot.candidates.clear(), slot.left_out.clear();
    slot.native_modelled = -1;
  }
  while (!slot.search->done()) {
    const std::int64_t wanted = slot.search->next_cost();
    const double cost = kModelMessage * static_cast<double>(wanted);
    if ((wanted > budget_ && modelled()) || slot.modelling + cost > kModelShare * slot.spent + kModelStake)
      return false;
    budget_ -= wanted;
    slot.modelling += cost;
    slot.search->step();
  }
  take(slot, slot.search->found());
  // Derived from time: a search that has been forgotten is repeated, which takes up to 0.3 s per candidate
  // (kMostInJob). Each kept one holds a pattern, and every new search is compared with all of them.
  constexpr std::size_t kSearchesKept = 16;
  if (!only) {
    if (searched_.size() == kSearchesKept) searched_.erase(searched_.begin());
    searched_.push_back(std::move(*slot.search));
  }
  slot.search.reset();
  return true;
}

double Learner::native_measured(const Slot& slot) const {
  return policy_.objective == Objective::mean_elapsed ? slot.native.median_elapsed() : slot.native.median_after();
}

/// Whether native's modelled time may be held against ours.
bool Learner::model_fits(const Slot& slot) const {
  return slot.native_modelled < 0 || !slot.native.enough() || is_forecast(slot.native_modelled, native_measured(slot));
}

/// The model says what is worth a trial, between figures of its own, whose common mistakes cancel out; measurements
/// choose.
bool Learner::worth_trying(const Slot& slot, const Candidate& c) const {
  return slot.native_modelled < 0 ||
         c.modelled_ns <= std::min(kWorthTrying * slot.native_modelled, slot.native_modelled - kDispatch);
}

/// `auto` keeps native until a forecast exists and native has been measured. Then it tries the candidates, the best of
/// the model first. A candidate that does not win is not tried again until the pattern changes.
void Learner::choose(Slot& slot) {
  const Forecast& f = slot.forecast;
  slot.modelled = -1;
  // A better tree for blocks of different sizes is one with balanced arrivals, too.
  const bool irregular = is_irregular(slot.signature.op);
  if (irregular && slot.expected.sizes.empty()) return settle(slot, -1, 0, false, Why::no_sizes);
  if (!irregular && (f.uncertain() || slight(slot))) {
    slot.candidates.clear();
    slot.modelled_for.clear();
    slot.search.reset();
    return settle(slot, -1, 0, false,
                  f.offsets.empty()       ? Why::nothing_seen
                  : !f.uncertain()        ? Why::slight
                  : nearly_together(slot) ? Why::balanced
                                          : Why::unforeseen);
  }
  if (!slot.native.enough()) return settle(slot, -1, 0, false, Why::measuring);
  if (slot.search || slot.modelled_for.empty() || (!f.uncertain() && moved(slot.modelled_for, f.offsets)) ||
      resized(slot.modelled_sizes, slot.expected.sizes)) {
    if (!model(slot)) return settle(slot, slot.algorithm, slot.segments, true, Why::no_budget, slot.on_trial);
  }
  if (slot.algorithm >= 0 && slot.current.enough() && !wins(slot))
    for (Candidate& c : slot.candidates)
      if (c.algorithm == slot.algorithm && c.segments == slot.segments) c.lost = true, slot.proven = -1;
  for (const Candidate& c : slot.candidates) {
    if (c.lost || (slot.sizes_vary() && algorithm_at(c.algorithm).needs_sizes)) continue;
    if (!worth_trying(slot, c)) break;
    slot.modelled = c.modelled_ns;
    const bool same = c.algorithm == slot.algorithm && c.segments == slot.segments;
    if (same && slot.current.enough()) {
      slot.proven = c.algorithm, slot.proven_segments = c.segments;
      return settle(slot, c.algorithm, c.segments, true, Why::won);
    }
    const bool proven = c.algorithm == slot.proven && c.segments == slot.proven_segments;
    if (!same && !proven && slot.risked > kRisk * slot.spent + kStake * slot.native.median_after())
      return settle(slot, -1, 0, false, Why::risk);
    // Its calls were not seen: once more.
    if (same && slot.on_trial && slot.after_trial >= kTrial) ++slot.round, slot.after_trial = 0;
    return settle(slot, c.algorithm, c.segments, true, Why::tried, !proven);
  }
  const bool lost =
      std::any_of(slot.candidates.begin(), slot.candidates.end(), [](const Candidate& c) { return c.lost; });
  settle(slot, -1, 0, false, lost ? Why::lost : slot.candidates.empty() ? Why::nothing_serves : Why::no_gain);
}

/// Without a period, the site of a coming call is not known: one tree cannot be built for two sites' sizes.
void Learner::note_shared_sizes() {
  std::map<std::uint64_t, const Slot*> first;
  std::set<std::uint64_t> at_odds;
  const auto all = decided();
  for (const Slot* slot : all) {
    if (!slots_.empty() || slot->expected.sizes.empty()) continue;
    const auto [at, fresh] = first.try_emplace(slot->hash, slot);
    if (!fresh && resized(at->second->expected.sizes, slot->expected.sizes)) at_odds.insert(slot->hash);
  }
  for (Slot* slot : all) {
    const bool shares = at_odds.contains(slot->hash);
    if (shares != slot->shares) slot->decided_at = UINT64_MAX;  // to be decided anew, though it has had no call
    slot->shares = shares;
  }
}

void Learner::decide_slot(Slot& slot) {
  slot.forecast = slot.predictor.forecast(policy_.predictor);
  const Signature& s = slot.signature;
  if (!s.dispatchable()) return settle(slot, -1, 0, false, Why::unserved);
  double factor = -1;
  if (policy_.network_given && s.bytes > 0) {
    const double message = static_cast<double>(policy_.network.port_ns(s.bytes)) + policy_.network.flight_ns(s.bytes);
    if (message > 0) factor = static_cast<double>(slot.forecast.spread) / message;
  }
  const Rule* rule = first_match(policy_, {s.op, s.bytes, ranks_, s.root, s.op_class}, [&](const Match& m) {
    return (m.site.empty() || site_matches_(slot.site, s.op, m.site)) &&
           (m.imbalance_factor.all() || (factor >= 0 && m.imbalance_factor.contains(factor)));
  });
  slot.rule = rule;
  slot.overlap = !rule || rule->use.overlap;
  slot.modelled = -1;
  if (!s.exact && policy_.reproducible != Reproducible::any) {
    // When a plan comes into force, and what it says, is not the same in every run: it must not change who runs, nor
    // how operands associate.
    const Decision alone = decide(policy_, s, ranks_);
    return settle(slot, index_of(alone.algorithm), alone.segments, true, Why::reproducible);
  }
  if (!rule) return settle(slot, -1, 0, false, Why::no_rule);
  if (rule->use.kind == Use::Kind::native) return settle(slot, -1, 0, false, Why::rule_native);
  if (rule->use.kind == Use::Kind::automatic) return choose(slot);
  const int wanted = index_of(find_algorithm(s.op, rule->use.algorithm));
  if (wanted >= 0 && algorithm_at(wanted).needs_sizes && slot.expected.sizes.empty())
    return settle(slot, -1, 0, false, Why::rule_before_sizes);
  const Decision asked = decision(slot, wanted, rule->use.segments);
  if (!asked.algorithm && !asked.unplanned) return settle(slot, -1, 0, false, Why::rule_forbidden);
  if (algorithm_at(wanted).needs_sizes && slot.sizes_vary()) {
    const int other = index_of(stand_in_for(s.op));
    return settle(slot, may(slot, other, 0) ? other : -1, 0, false, Why::rule_sizes_vary);
  }
  if (asked.unplanned) return settle(slot, index_of(asked.algorithm), asked.segments, true, Why::rule_unplanned);
  // What the model expects of it, so that it can be held against what is measured.
  if (policy_.network_given && !slot.forecast.uncertain() &&
      (slot.search || slot.modelled_for.empty() || moved(slot.modelled_for, slot.forecast.offsets)))
    model(slot, asked.algorithm, asked.segments);
  for (const Candidate& c : slot.candidates)
    if (c.algorithm == wanted && c.segments == asked.segments) slot.modelled = c.modelled_ns;
  settle(slot, wanted, asked.segments, true, slot.forecast.uncertain() ? Why::rule_flat : Why::rule);
}

}  // namespace latecomer::core

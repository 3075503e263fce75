// SPDX-License-Identifier: BSD-3-Clause
// The decision of a slot: rules, and candidates of the model. core/learning/rota.cpp compares them.
#include <algorithm>
#include <map>
#include <set>

#include "core/learning/changed.hpp"
#include "core/learning/learner.hpp"

namespace latecomer::core {
/// Whether a plan keeps its pattern although arrivals have moved, because too few of its calls are measured. The logs
/// of a plan come two epochs later, so a plan that changes at every announcement is never measured. In a reduce, ranks
/// may run ahead, and the pattern may move in every epoch.
bool Learner::hold(Slot& slot, int measured) {
  constexpr int kMostHeld = 2;  // derived: the epochs until the logs of a plan are here
  const bool holds = measured < kFirst && slot.held < kMostHeld;
  slot.held = holds ? slot.held + 1 : 0;
  return holds;
}

void Learner::settle(Slot& slot, int algorithm, int segments, bool with_pattern, Why why) {
  slot.why = why;
  const auto serves = [&](auto use) {
    return (algorithm >= 0 && use(algorithm_at(algorithm))) ||
           std::ranges::any_of(slot.rota.runners,
                               [&](const Runner& r) { return r.algorithm >= 0 && use(algorithm_at(r.algorithm)); });
  };
  std::vector<Nanoseconds> pattern;
  if (with_pattern && !slot.forecast.uncertain() && serves([](const Algorithm& a) { return a.uses_pattern(); }))
    pattern = slot.forecast.offsets;
  const bool moves = !pattern.empty() && !slot.announced.empty() && moved(slot.announced, pattern);
  const bool kept = moves && algorithm == slot.algorithm && segments == slot.segments && !slot.rota.running() &&
                    hold(slot, slot.current.count);
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

/// Whether the imbalance is too small to matter. An algorithm can save at most the imbalance, because it works while
/// early ranks wait. A saving below the least gain worth trying, or below the cost of a dispatch, does not pay.
bool Learner::slight(const Slot& slot) const {
  const auto spread = static_cast<double>(slot.forecast.spread);
  return slot.native.enough() && (spread < kDispatch || spread < (1 - kWorthTrying) * slot.native.median_after());
}

/// Whether the ranks arrive nearly together, in the mean of the slot's calls, so that a forecast could save no time.
bool Learner::nearly_together(const Slot& slot) const {
  const double imbalance = slot.seen ? slot.imbalance / static_cast<double>(slot.seen) : 0;
  return imbalance < std::max(kDispatch, slot.native.enough() ? (1 - kWorthTrying) * slot.native.median_after() : 0);
}

/// Whether the schedules of this slot ignore arrivals, because the forecast is uncertain or the imbalance is too small.
bool Learner::flat(const Slot& slot) const {
  return slot.forecast.uncertain() || (!is_irregular(slot.signature.op) && slight(slot));
}

/// Whether no algorithm serves this slot and more observations would not change that.
bool Learner::quiet(const Slot& slot) const {
  switch (slot.why) {
    case Why::unserved:
    case Why::no_rule:
    case Why::rule_native:
    case Why::slight:
      return slot.algorithm < 0;
    // No stable pattern yet: keep observing unless the imbalance is too small to matter.
    case Why::balanced:
    case Why::unforeseen:
      return slot.native.enough() &&
             static_cast<double>(slot.forecast.spread) < std::max(kDispatch, slot.native.median_after());
    // The candidates were compared without a pattern: keep observing unless the ranks arrive together.
    case Why::lost:
    case Why::no_gain:
    case Why::nothing_serves:
      return slot.algorithm < 0 && !is_irregular(slot.signature.op) && flat(slot) && nearly_together(slot);
    default:
      return false;
  }
}

/// The decision for a call of this slot if the plan names this algorithm. The policy may forbid it.
Decision Learner::decision(const Slot& slot, int algorithm, int segments) const {
  return decide_as(policy_, slot.signature, ranks_,
                   {.algorithm = algorithm, .segments = segments, .sizes = slot.expected.sizes.empty() ? -1 : 0});
}

bool Learner::may(const Slot& slot, int algorithm, int segments) const {
  return index_of(decision(slot, algorithm, segments).algorithm) == algorithm;
}

/// Copies the candidates of a search to the slot, without those that the policy forbids.
void Learner::take(Slot& slot, const Candidates& found) const {
  slot.native_modelled = found.native_ns;
  slot.candidates = found.list;
  slot.left_out = found.left_out;
  slot.candidate_messages = found.messages;
  std::erase_if(slot.candidates, [&](const Candidate& c) {
    return !may(slot, c.algorithm, c.segments) || (algorithm_at(c.algorithm).background && !policy_.background_enabled);
  });
}

/// Models the candidates for the slot under its forecast, one by one. Returns false if the budget of this announcement
/// or of the slot is spent first; the next announcement models the others. `only`: model no algorithm but this one
/// and native.
bool Learner::model(Slot& slot, const Algorithm* only, int segments) {
  const bool flat = this->flat(slot);
  const auto pattern_of = [&] {
    return flat ? std::vector<Nanoseconds>(static_cast<std::size_t>(ranks_), 0) : slot.forecast.offsets;
  };
  if (slot.search && (flat != slot.modelled_flat || moved(slot.modelled_for, pattern_of()) ||
                      resized(slot.modelled_sizes, slot.expected.sizes)))
    slot.search.reset();
  if (!slot.search) {
    const Call call = call_of(slot.signature, ranks_);
    slot.modelled_for = pattern_of();
    slot.modelled_flat = flat;
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
    Parameters parameters{.network = policy_.network, .sizes = slot.expected.sizes, .hosts = hosts_};
    slot.search.emplace(call, flat ? Pattern() : Pattern(slot.forecast.offsets), std::move(parameters),
                        policy_.objective);
    if (only) slot.search->only(*only, segments);
    slot.candidates.clear();
    slot.left_out.clear();
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
  // Derived from time: to repeat a search that is no longer kept takes up to 0.3 s per candidate (kMostInJob). Each
  // kept search holds a pattern, and every new search is compared with all of them.
  constexpr std::size_t kSearchesKept = 16;
  if (!only) {
    if (searched_.size() == kSearchesKept) searched_.erase(searched_.begin());
    searched_.push_back(std::move(*slot.search));
  }
  slot.search.reset();
  return true;
}

double Learner::median_of(const Samples& samples) const {
  return policy_.objective == Objective::mean_elapsed ? samples.median_elapsed() : samples.median_after();
}

double Learner::native_measured(const Slot& slot) const { return median_of(slot.native); }

/// Whether native's modelled time is close enough to its measured time to compare candidates with it.
bool Learner::model_fits(const Slot& slot) const {
  return slot.native_modelled < 0 || !slot.native.enough() || is_forecast(slot.native_modelled, native_measured(slot));
}

/// Whether the model expects enough gain to try a candidate. Compares modelled times with each other, because their
/// common errors cancel out; later, measurements choose the winner. Without a pattern, the candidate must also beat
/// native's measured time, because the MPI library may run a faster algorithm than the model assumes.
bool Learner::worth_trying(const Slot& slot, const Candidate& c) const {
  if (slot.native_modelled >= 0 &&
      c.modelled_ns > std::min(kWorthTrying * slot.native_modelled, slot.native_modelled - kDispatch))
    return false;
  return is_irregular(slot.signature.op) || !flat(slot) ||
         (slot.native_modelled >= 0 &&
          c.modelled_ns <= std::min(kWorthTrying * native_measured(slot), native_measured(slot) - kDispatch));
}

/// The candidates of the next rota, fastest in the model first. One candidate per algorithm, since logs do not record
/// the number of segments.
std::vector<Learner::Runner> Learner::best_candidates(const Slot& slot) const {
  // A candidate replaces the algorithm in use only if the model expects a clear gain over it.
  constexpr double kBetterThanWinner = 0.9;
  double limit = -1;
  for (const Candidate& c : slot.candidates)
    if (slot.algorithm >= 0 && c.algorithm == slot.algorithm && c.segments == slot.segments)
      limit = kBetterThanWinner * c.modelled_ns;
  const double ratio =
      slot.native_modelled > 0 && slot.native.enough() ? native_measured(slot) / slot.native_modelled : 0;
  const bool trusted = ratio > 1 / kTrusted && ratio < kTrusted;
  std::vector<Runner> out;
  for (const Candidate& c : slot.candidates) {
    if (c.lost || (slot.sizes_vary() && algorithm_at(c.algorithm).needs_sizes)) continue;
    // The candidate behaves like another one (`same_as`), so the measurements of that one count for both.
    if (std::ranges::any_of(slot.candidates, [&](const Candidate& o) { return o.algorithm == c.same_as; })) continue;
    if (!worth_trying(slot, c) || (limit >= 0 && c.modelled_ns > limit)) break;
    if (c.algorithm == slot.algorithm ||
        std::ranges::any_of(out, [&](const Runner& r) { return r.algorithm == c.algorithm; }))
      continue;
    if (!out.empty() && (!trusted || c.modelled_ns > kNearBest * out.front().modelled)) break;
    out.push_back({c.algorithm, c.segments, c.modelled_ns, {}});
    if (out.size() == kMostTurns - 1) break;
  }
  return out;
}

/// Whether the winner in use is now slower than native, measured in this run or else in the earlier run.
bool Learner::doubts(const Slot& slot) const {
  const double native = slot.native.enough() ? native_measured(slot)
                        : slot.earlier       ? slot.earlier->native_measured_ns
                                             : -1;
  return native > 0 && slot.current.count >= kEnough && median_of(slot.current) > native;
}

/// `auto` keeps native until a few of its calls are measured. Then the best candidates of the model and the algorithm
/// in use serve the calls in turn, until measurements decide. A candidate that does not win is not tried again until
/// the pattern changes.
void Learner::choose(Slot& slot) {
  const Forecast& f = slot.forecast;
  slot.modelled = -1;
  // A better tree for blocks of different sizes saves time with balanced arrivals, too.
  const bool irregular = is_irregular(slot.signature.op), flat = this->flat(slot);
  if (irregular && slot.expected.sizes.empty()) return settle(slot, -1, 0, false, Why::no_sizes);
  const bool changed = slot.modelled_for.empty() || flat != slot.modelled_flat ||
                       (!flat && moved(slot.modelled_for, f.offsets)) ||
                       resized(slot.modelled_sizes, slot.expected.sizes);
  // An earlier run measured that its winner is faster than native. It stays in use under any pattern, until
  // measurements of this run show that it is slower.
  const bool from_earlier = slot.earlier && slot.algorithm == slot.earlier->algorithm && !slot.rota.running();
  if (from_earlier && !doubts(slot)) return settle(slot, slot.algorithm, slot.segments, !flat, Why::remembered);
  if (!irregular && flat && !(policy_.network_given && slot.signature.bytes > kLeastBalanced)) {
    slot.candidates.clear();
    slot.modelled_for.clear();
    slot.search.reset();
    end_rota(slot);
    return settle(slot, -1, 0, false, why_flat(slot));
  }
  if (slot.rota.running()) {
    if (changed && !hold(slot, slot.rota.seen)) end_rota(slot);
    else if (conduct(slot)) return;
  }
  if (slot.algorithm >= 0 && doubts(slot)) {
    const Runner winner{slot.algorithm, slot.segments, -1, {}};
    settle(slot, -1, 0, false, Why::tried);
    return begin_rota(slot, {winner});
  }
  if (!slot.native.enough() && slot.algorithm < 0)
    return settle(slot, -1, 0, false, !flat ? Why::measuring : why_flat(slot));
  const bool never = slot.native_modelled < 0 && slot.candidates.empty() && slot.left_out.empty();
  if ((changed || never || slot.search) && !model(slot))
    return settle(slot, slot.algorithm, slot.segments, !flat, Why::no_budget);
  // The winner in use stays under a new pattern, as long as the model expects a gain.
  if (slot.algorithm >= 0) {
    const auto same = std::ranges::find_if(slot.candidates, [&](const Candidate& c) {
      return c.algorithm == slot.algorithm && c.segments == slot.segments;
    });
    if (same == slot.candidates.end() || !worth_trying(slot, *same)) settle(slot, -1, 0, false, Why::no_gain);
    else slot.modelled = same->modelled_ns;
  }
  const auto candidates = best_candidates(slot);
  if (!candidates.empty() && too_risky(slot))
    return settle(slot, slot.algorithm, slot.segments, !flat, slot.algorithm >= 0 ? Why::won : Why::risk);
  if (!candidates.empty()) return begin_rota(slot, candidates);
  if (slot.algorithm >= 0) return settle(slot, slot.algorithm, slot.segments, !flat, Why::won);
  const bool lost = std::ranges::any_of(slot.candidates, [](const Candidate& c) { return c.lost; });
  settle(slot, -1, 0, false,
         lost                      ? Why::lost
         : slot.candidates.empty() ? Why::nothing_serves
         : flat && !irregular      ? why_flat(slot)
                                   : Why::no_gain);
}

/// The reason why no algorithm can gain from the arrivals of the slot.
Learner::Why Learner::why_flat(const Slot& slot) const {
  return slot.forecast.offsets.empty() && slot.seen == 0 ? Why::nothing_seen
         : !slot.forecast.uncertain()                    ? Why::slight
         : nearly_together(slot)                         ? Why::balanced
                                                         : Why::unforeseen;
}

/// Marks the slots whose signature another site uses with other block sizes. Without a period, the site of the next
/// call is unknown, and one tree does not fit the sizes of both sites.
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
    if (shares != slot->shares) slot->decided_at = UINT64_MAX;  // decide again, even without new calls
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
  if (!rule || rule->use.kind != Use::Kind::automatic) end_rota(slot);
  slot.overlap = !rule || rule->use.overlap;
  slot.modelled = -1;
  if (!s.exact && policy_.reproducible != Reproducible::any) {
    // Plans, and the calls at which they come into force, differ between runs. So a plan must not change the algorithm
    // or the association of the operands.
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
  // Model the algorithm of the rule, so that the report can compare the modelled and the measured time.
  if (policy_.network_given && !slot.forecast.uncertain() &&
      (slot.search || slot.modelled_for.empty() || moved(slot.modelled_for, slot.forecast.offsets)))
    model(slot, asked.algorithm, asked.segments);
  for (const Candidate& c : slot.candidates)
    if (c.algorithm == wanted && c.segments == asked.segments) slot.modelled = c.modelled_ns;
  settle(slot, wanted, asked.segments, true, slot.forecast.uncertain() ? Why::rule_flat : Why::rule);
}

}  // namespace latecomer::core

// SPDX-License-Identifier: BSD-3-Clause
// Reads the rules of the policy, and chooses the candidates of `auto`.
#include "core/learning/decide.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/learning/changed.hpp"
#include "core/learning/forecast.hpp"
#include "core/learning/rota.hpp"

namespace latecomer::core {
namespace {

/// Several candidates share a rota if native's modelled and measured times differ by a factor below kTrusted.
constexpr double kTrusted = 1.5;
/// Candidates whose modelled time is at most so many times the best one's share the rota. Derived: 90% of the errors
/// of the model are below 22% (docs/results/wire.md).
constexpr double kNearBest = 1.25;
/// Calls of at most this many bytes stay native where arrivals are balanced or unpredictable. Derived: such a call
/// takes the latency of its messages, which the algorithms of the catalogue do not shorten.
constexpr Bytes kLeastBalanced = 2048;

/// Whether the model expects enough gain to try a candidate. Compares modelled times with each other, because their
/// common errors cancel out; later, measurements choose the winner. Without a pattern, the candidate must also beat
/// native's measured time, because the MPI library may run a faster algorithm than the model assumes.
bool is_worth_trying(const Slot& slot, const Candidate& c, Objective objective) {
  if (slot.model.native_ns >= 0 &&
      c.modelled_ns > std::min(kWorthTrying * slot.model.native_ns, slot.model.native_ns - kDispatch))
    return false;
  return is_irregular(slot.signature.op) || !ignores_arrivals(slot) ||
         (slot.model.native_ns >= 0 && c.modelled_ns <= std::min(kWorthTrying * slot.native.median(objective),
                                                                 slot.native.median(objective) - kDispatch));
}

/// The candidates of the next rota, fastest in the model first. One candidate per algorithm, since logs do not record
/// the number of segments.
std::vector<Runner> find_best_candidates(const Slot& slot, Objective objective) {
  // A candidate replaces the algorithm in use only if the model expects a clear gain over it.
  constexpr double kBetterThanWinner = 0.9;
  double limit = -1;
  for (const Candidate& c : slot.model.candidates)
    if (slot.algorithm >= 0 && c.algorithm == slot.algorithm && c.segments == slot.segments)
      limit = kBetterThanWinner * c.modelled_ns;
  const double ratio =
      slot.model.native_ns > 0 && slot.native.enough() ? slot.native.median(objective) / slot.model.native_ns : 0;
  const bool trusted = ratio > 1 / kTrusted && ratio < kTrusted;
  std::vector<Runner> out;
  for (const Candidate& c : slot.model.candidates) {
    if (c.lost || (slot.sizes_vary() && algorithm_at(c.algorithm).needs_sizes)) continue;
    // The candidate behaves like another one (`same_as`), so the measurements of that one count for both.
    if (std::ranges::any_of(slot.model.candidates, [&](const Candidate& o) { return o.algorithm == c.same_as; }))
      continue;
    if (!is_worth_trying(slot, c, objective) || (limit >= 0 && c.modelled_ns > limit)) break;
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
bool is_winner_slower(const Slot& slot, Objective objective) {
  const double native = slot.native.enough() ? slot.native.median(objective)
                        : slot.earlier       ? slot.earlier->native_measured_ns
                                             : -1;
  return native > 0 && slot.current.count() >= kEnoughMeasured && slot.current.median(objective) > native;
}

/// `auto` keeps native until a few of its calls are measured. Then the best candidates of the model and the algorithm
/// in use serve the calls in turn, until measurements decide. A candidate that does not win is not tried again until
/// the pattern changes.
void choose_candidates(const LearningTerms& terms, SlotModeller& modeller, Slot& slot) {
  const Objective objective = terms.policy.objective;
  SlotModel& model = slot.model;
  model.chosen_ns = -1;
  // A better tree for blocks of different sizes saves time with balanced arrivals, too.
  const bool irregular = is_irregular(slot.signature.op), flat = ignores_arrivals(slot);
  if (irregular && slot.expected.sizes.empty()) return settle_slot(slot, -1, 0, false, Reason::no_sizes);
  const bool changed = model.pattern.empty() || flat != model.flat ||
                       (!flat && moved(model.pattern, slot.arrivals.forecast.offsets)) ||
                       resized(model.sizes, slot.expected.sizes);
  // An earlier run measured that its winner is faster than native. It stays in use under any pattern, until
  // measurements of this run show that it is slower.
  const bool from_earlier = slot.earlier && slot.algorithm == slot.earlier->algorithm && !slot.rota.running();
  if (from_earlier && !is_winner_slower(slot, objective))
    return settle_slot(slot, slot.algorithm, slot.segments, !flat, Reason::remembered);
  if (!irregular && flat && !(terms.policy.network_given && slot.signature.bytes > kLeastBalanced)) {
    model.candidates.clear();
    model.pattern.clear();
    model.search.reset();
    end_rota(slot);
    return settle_slot(slot, -1, 0, false, reason_to_ignore_arrivals(slot));
  }
  if (slot.rota.running()) {
    if (changed && !hold_pattern(slot, slot.rota.seen)) end_rota(slot);
    else if (advance_rota(slot, objective)) return;
  }
  if (slot.algorithm >= 0 && is_winner_slower(slot, objective)) {
    const Runner winner{slot.algorithm, slot.segments, -1, {}};
    settle_slot(slot, -1, 0, false, Reason::tried);
    return begin_rota(slot, {winner});
  }
  if (!slot.native.enough() && slot.algorithm < 0)
    return settle_slot(slot, -1, 0, false, !flat ? Reason::measuring : reason_to_ignore_arrivals(slot));
  const bool never = model.native_ns < 0 && model.candidates.empty() && model.left_out.empty();
  if ((changed || never || model.search) && !modeller.model_slot(terms, slot))
    return settle_slot(slot, slot.algorithm, slot.segments, !flat, Reason::no_budget);
  // The winner in use stays under a new pattern, as long as the model expects a gain.
  if (slot.algorithm >= 0) {
    const auto same = std::ranges::find_if(model.candidates, [&](const Candidate& c) {
      return c.algorithm == slot.algorithm && c.segments == slot.segments;
    });
    if (same == model.candidates.end() || !is_worth_trying(slot, *same, objective))
      settle_slot(slot, -1, 0, false, Reason::no_gain);
    else model.chosen_ns = same->modelled_ns;
  }
  const auto candidates = find_best_candidates(slot, objective);
  if (!candidates.empty() && is_too_risky(slot))
    return settle_slot(slot, slot.algorithm, slot.segments, !flat, slot.algorithm >= 0 ? Reason::won : Reason::risk);
  if (!candidates.empty()) return begin_rota(slot, candidates);
  if (slot.algorithm >= 0) return settle_slot(slot, slot.algorithm, slot.segments, !flat, Reason::won);
  const bool lost = std::ranges::any_of(model.candidates, [](const Candidate& c) { return c.lost; });
  settle_slot(slot, -1, 0, false,
              lost                       ? Reason::lost
              : model.candidates.empty() ? Reason::nothing_serves
              : flat && !irregular       ? reason_to_ignore_arrivals(slot)
                                         : Reason::no_gain);
}

}  // namespace

void decide_slot(const LearningTerms& terms, SlotModeller& modeller, Slot& slot) {
  slot.arrivals.forecast = slot.arrivals.predictor.forecast(terms.policy.predictor);
  const Signature& s = slot.signature;
  if (!s.dispatchable()) return settle_slot(slot, -1, 0, false, Reason::unserved);
  double factor = -1;
  if (terms.policy.network_given && s.bytes > 0) {
    const double message =
        static_cast<double>(terms.policy.network.port_ns(s.bytes)) + terms.policy.network.flight_ns(s.bytes);
    if (message > 0) factor = static_cast<double>(slot.arrivals.forecast.spread) / message;
  }
  const Rule* rule = first_match(terms.policy, {s.op, s.bytes, terms.ranks, s.root, s.op_class}, [&](const Match& m) {
    return (m.site.empty() || terms.site_matches(slot.site, s.op, m.site)) &&
           (m.imbalance_factor.all() || (factor >= 0 && m.imbalance_factor.contains(factor)));
  });
  slot.rule = rule;
  if (!rule || rule->use.kind != Use::Kind::automatic) end_rota(slot);
  slot.overlap = !rule || rule->use.overlap;
  slot.model.chosen_ns = -1;
  if (!s.exact && terms.policy.reproducible != Reproducible::any) {
    // Plans, and the calls at which they come into force, differ between runs. So a plan must not change the algorithm
    // or the association of the operands.
    const Decision alone = decide_call(terms.policy, s, terms.ranks);
    return settle_slot(slot, index_of(alone.algorithm), alone.segments, true, Reason::reproducible);
  }
  if (!rule) return settle_slot(slot, -1, 0, false, Reason::no_rule);
  if (rule->use.kind == Use::Kind::native) return settle_slot(slot, -1, 0, false, Reason::rule_native);
  if (rule->use.kind == Use::Kind::automatic) return choose_candidates(terms, modeller, slot);
  const int wanted = index_of(find_algorithm(s.op, rule->use.algorithm));
  if (wanted >= 0 && algorithm_at(wanted).needs_sizes && slot.expected.sizes.empty())
    return settle_slot(slot, -1, 0, false, Reason::rule_before_sizes);
  const Decision asked = decide_planned(terms, slot, wanted, rule->use.segments);
  if (!asked.algorithm && !asked.unplanned) return settle_slot(slot, -1, 0, false, Reason::rule_forbidden);
  if (algorithm_at(wanted).needs_sizes && slot.sizes_vary()) {
    const int other = index_of(stand_in_for(s.op));
    return settle_slot(slot, is_allowed(terms, slot, other, 0) ? other : -1, 0, false, Reason::rule_sizes_vary);
  }
  if (asked.unplanned)
    return settle_slot(slot, index_of(asked.algorithm), asked.segments, true, Reason::rule_unplanned);
  // Model the algorithm of the rule, so that the report can compare the modelled and the measured time.
  if (terms.policy.network_given && !slot.arrivals.forecast.uncertain() &&
      (slot.model.search || slot.model.pattern.empty() || moved(slot.model.pattern, slot.arrivals.forecast.offsets)))
    modeller.model_slot(terms, slot, asked.algorithm, asked.segments);
  for (const Candidate& c : slot.model.candidates)
    if (c.algorithm == wanted && c.segments == asked.segments) slot.model.chosen_ns = c.modelled_ns;
  settle_slot(slot, wanted, asked.segments, true,
              slot.arrivals.forecast.uncertain() ? Reason::rule_flat : Reason::rule);
}

void mark_shared_sizes(const std::vector<Slot*>& slots, bool has_period) {
  std::map<std::uint64_t, const Slot*> first;
  std::set<std::uint64_t> at_odds;
  for (const Slot* slot : slots) {
    if (has_period || slot->expected.sizes.empty()) continue;
    const auto [at, fresh] = first.try_emplace(slot->hash, slot);
    if (!fresh && resized(at->second->expected.sizes, slot->expected.sizes)) at_odds.insert(slot->hash);
  }
  for (Slot* slot : slots) {
    const bool shares = at_odds.contains(slot->hash);
    if (shares != slot->shares) slot->decided_at = UINT64_MAX;  // decide again, even without new calls
    slot->shares = shares;
  }
}

bool is_quiet(const Slot& slot) {
  switch (slot.reason) {
    case Reason::unserved:
    case Reason::no_rule:
    case Reason::rule_native:
    case Reason::slight:
      return slot.algorithm < 0;
    // No stable pattern yet: keep observing unless the imbalance is too small to matter.
    case Reason::balanced:
    case Reason::unforeseen:
      return slot.native.enough() &&
             static_cast<double>(slot.arrivals.forecast.spread) < std::max(kDispatch, slot.native.median_after());
    // The candidates were compared without a pattern: keep observing unless the ranks arrive together.
    case Reason::lost:
    case Reason::no_gain:
    case Reason::nothing_serves:
      return slot.algorithm < 0 && !is_irregular(slot.signature.op) && ignores_arrivals(slot) && arrive_together(slot);
    default:
      return false;
  }
}

bool model_fits(const Slot& slot, Objective objective) {
  return slot.model.native_ns < 0 || !slot.native.enough() ||
         is_forecast(slot.model.native_ns, slot.native.median(objective));
}

}  // namespace latecomer::core

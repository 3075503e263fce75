// SPDX-License-Identifier: BSD-3-Clause
// Learning and choosing.
#include "core/learning/learner.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "core/base/text.hpp"

namespace latecomer::core {
namespace {

// Medians of a few dozen calls on a busy machine differ by this much without cause.
constexpr double kWins = 0.97, kNotWorse = 1.03;
// While something is to be learned, epochs last so long if that is less than Sequence::kSteadyEpoch calls: a verdict
// takes three epochs. A boundary costs some 50 us and 1 us per rank and call.
constexpr double kLearningEpoch = 2e7;
// Calls of an epoch between two rests, or as many as there are slots: one late arrival is enough to end the rest.
constexpr std::uint64_t kGlance = 32;
// Where ranks wait for the leader at boundaries: this part of the time, but for the first few; and calls between two at
// most.
constexpr double kWaiting = 0.01, kMostBetweenWaits = 65'536;

std::uint64_t key_of(std::uint64_t hash, std::uint64_t site) { return mix64(hash ^ mix64(site)); }

/// Another pattern in kind: somebody moved by half of what separates the first from the last. Less is noise, and would
/// begin every trial anew.
bool moved(std::span<const Nanoseconds> before, std::span<const Nanoseconds> now) {
  if (before.size() != now.size()) return true;
  Nanoseconds spread = 0, most = 0;
  for (std::size_t r = 0; r < now.size(); ++r)
    spread = std::max(spread, before[r]), most = std::max(most, std::abs(before[r] - now[r]));
  return 2 * most > spread;
}

/// Other sizes: more than a tenth of all bytes lie elsewhere. Less does not make another tree worth announcing.
bool resized(std::span<const Bytes> before, std::span<const Bytes> now) {
  if (before.size() != now.size()) return true;
  Bytes all = 0, elsewhere = 0;
  for (std::size_t r = 0; r < now.size(); ++r) all += before[r], elsewhere += std::abs(before[r] - now[r]);
  return 10 * elsewhere > all;
}

}  // namespace

int Learner::ExpectedSizes::missed() const { return std::popcount(surprises); }

void Learner::ExpectedSizes::add(std::span<const Bytes> now) {
  const bool surprise = !sizes.empty() && resized(sizes, now);
  surprises = static_cast<std::uint16_t>(surprises << 1 | surprise);
  seen = std::min(seen + 1, kWindow);
  // Many calls have to agree before a plan relies on sizes again: it changes neither way because of one.
  varying = seen >= kLeast && (varying ? 4 * missed() > seen : 2 * missed() > seen);
  if (!surprise || !resized(other, now)) {
    sizes.assign(now.begin(), now.end());
    other.clear();
  } else {
    other.assign(now.begin(), now.end());
  }
}

void Learner::Samples::add(Nanoseconds after, double mean_elapsed) {
  after_last[static_cast<std::size_t>(count % kKept)] = static_cast<float>(after);
  elapsed[static_cast<std::size_t>(count % kKept)] = static_cast<float>(mean_elapsed);
  ++count;
}

double Learner::Samples::median(std::array<float, kKept> values) const {
  const int n = std::min(count, kKept);
  if (n == 0) return -1;
  std::nth_element(values.begin(), values.begin() + n / 2, values.begin() + n);
  return values[static_cast<std::size_t>(n / 2)];
}

Learner::Learner(const Policy& policy, int ranks, SiteMatch site_matches, std::size_t memory)
    : policy_(policy), ranks_(ranks), site_matches_(std::move(site_matches)) {
  const std::size_t each = sizeof(Slot) + static_cast<std::size_t>(ranks) *
                                              (2 * static_cast<std::size_t>(policy.predictor_window) + 8) *
                                              sizeof(Nanoseconds);
  most_slots_ = std::clamp<std::size_t>(memory / each, 4, kHistory / 2);
}

Learner::Slot* Learner::slot_of(const Signature& signature, std::uint64_t hash, std::uint64_t site) {
  auto& slot = by_key_[key_of(hash, site)];
  if (!slot) {
    if (by_key_.size() > most_slots_) {
      by_key_.erase(key_of(hash, site));
      return nullptr;
    }
    slot = std::make_unique<Slot>(ranks_, policy_.predictor_window);
    slot->signature = signature, slot->hash = hash;
    slot->site = site;
    if (const auto* before = history_of_ ? history_of_(site, signature.op) : nullptr) slot->predictor.seed(*before);
  }
  return slot.get();
}

void Learner::see(const CallSeen& call) {
  const std::uint64_t hash = call.signature.hash(), key = key_of(hash, call.site);
  divergent_ = divergent_ || call.divergent;
  if (call.n != next_) {
    history_.clear();
    if (call.n < next_) return;
  }
  next_ = call.n + 1;
  if (history_.size() == 2 * kHistory) history_.erase(history_.begin(), history_.begin() + kHistory);
  history_.push_back(key);

  Slot* slot = nullptr;
  if (!slots_.empty()) {
    Slot& expected = *slots_[(call.n - first_) % slots_.size()];
    if (expected.site == call.site && expected.hash == hash) slot = &expected;
    else end_period();  // the next announcement looks again
  }
  if (!slot) slot = slot_of(call.signature, hash, call.site);
  if (!slot) return;
  ++slot->calls;
  if (call.signature.kind != CallKind::blocking) return;
  slot->edged = call.edge ? slot->edged + 1 : 0;
  slot->spent += call.mean_elapsed;
  slot->predictor.add(call.offsets);
  slot->came_last.resize(static_cast<std::size_t>(ranks_));
  const auto last = std::max_element(call.offsets.begin(), call.offsets.end());
  if (last != call.offsets.end()) {
    ++slot->came_last[static_cast<std::size_t>(last - call.offsets.begin())], ++slot->seen;
    slot->imbalance += static_cast<double>(*last - *std::min_element(call.offsets.begin(), call.offsets.end()));
  }
  if (!call.sizes.empty()) slot->expected.add(call.sizes);
  if (call.after_last < 0) return;
  if (call.algorithm < 0) {
    slot->native.add(call.after_last, call.mean_elapsed);
    if (slot->on_trial && call.n >= slot->counts_from) ++slot->after_trial;
    return;
  }
  if (slot->on_trial && slot->native.enough())
    slot->risked = std::max(0.0, slot->risked + static_cast<double>(call.after_last) - slot->native.median_after());
  if (call.algorithm == slot->algorithm && call.n >= slot->counts_from)
    slot->current.add(call.after_last, call.mean_elapsed);
}

/// What the slots learnt stays with their sites.
void Learner::end_period() {
  for (auto& slot : slots_) {
    const std::uint64_t key = key_of(slot->hash, slot->site);
    by_key_[key] = std::move(slot);
  }
  slots_.clear();
}

/// The longest stretch of calls up to now that has a period, and that twice: prefix function of the reversed history.
void Learner::find_period() {
  constexpr std::size_t kShortest = 24;
  if (!slots_.empty()) return;
  const std::size_t m = std::min(history_.size(), kHistory);
  std::vector<std::size_t> fail(m, 0);
  const auto at = [&](std::size_t i) { return history_[history_.size() - 1 - i]; };
  std::size_t period = 0, length = 0;
  for (std::size_t i = 1; i < m; ++i) {
    std::size_t k = fail[i - 1];
    while (k > 0 && at(i) != at(k)) k = fail[k - 1];
    if (at(i) == at(k)) ++k;
    fail[i] = k;
    const std::size_t p = i + 1 - k;
    if (2 * p <= i + 1 && i + 1 >= kShortest) period = p, length = i + 1;
  }
  if (period == 0 || period > most_slots_) return;
  first_ = next_ - length;
  for (std::size_t s = 0; s < period; ++s) {
    const auto known = by_key_.find(at(length - 1 - s));
    if (known == by_key_.end()) {
      slots_.clear();
      return;
    }
    slots_.push_back(std::make_unique<Slot>(*known->second));
  }
}

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
      for (Rank r = 0; r < ranks_; ++r) its.push_back(s.pattern().arrival(r));
      if (!flat && moved(its, slot.modelled_for)) continue;
      take(slot, s.found());
      return true;
    }
    slot.search.emplace(call, flat ? Pattern() : Pattern(slot.forecast.offsets), policy_.network, policy_.objective,
                        true, slot.expected.sizes);
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

PlanEntry Learner::entry_for(const Slot& slot, Plan& plan) const {
  PlanEntry e;
  e.signature = slot.hash;
  e.algorithm = slot.algorithm;
  if (slot.algorithm < 0) return e;
  e.segments = slot.segments;
  e.overlap = slot.overlap;
  e.edge = edges_ && slot.edged >= kEnough && algorithm_at(slot.algorithm).uses_pattern();
  const auto index = [](auto& all, const auto& one) {
    if (one.empty()) return -1;
    const auto known = std::find(all.begin(), all.end(), one);
    const auto at = static_cast<std::int32_t>(known - all.begin());
    if (known == all.end()) all.push_back(one);
    return at;
  };
  e.pattern = index(plan.patterns, slot.announced), e.sizes = index(plan.sizes, slot.announced_sizes);
  return e;
}

std::vector<Learner::Slot*> Learner::decided() const {
  std::vector<Slot*> out;
  if (!slots_.empty())
    for (const auto& slot : slots_) out.push_back(slot.get());
  else
    for (const auto& [key, slot] : by_key_) out.push_back(slot.get());
  return out;
}

/// Short while something is to be learned and calls take long: of 128 calls of 10 ms that go by before a verdict, most
/// go by for nothing.
std::uint64_t Learner::epoch_for(const std::vector<Slot*>& slots) const {
  const auto learning = [](const Slot* slot) {
    return slot->why == Why::measuring || slot->why == Why::tried || slot->why == Why::no_budget;
  };
  if (slots.empty() && asked_n_ < Sequence::kSteadyEpoch) return Sequence::kFirstBoundary;
  if (pace_ <= 0 || std::none_of(slots.begin(), slots.end(), learning)) return 0;
  const double calls =
      std::max({static_cast<double>(Sequence::kFirstBoundary), static_cast<double>(slots.size()) * kTrial,
                kLearningEpoch * (1 + ranks_ / 100.0) / pace_});
  return calls < static_cast<double>(Sequence::kSteadyEpoch) ? static_cast<std::uint64_t>(calls) : 0;
}

Learner::Announcement Learner::with_epoch(Announcement out, Nanoseconds now, const std::vector<Slot*>& slots) {
  const Rest::Epoch epoch = rest_.next(quiet_, asked_n_, now, glance_);
  out.rest = epoch.rest;
  out.epoch = quiet_ ? epoch.calls : epoch_for(slots);
  if (waited_ > 0 && pace_ > 0 && asked_n_ >= Sequence::kSteadyEpoch) {  // the first distances are fixed
    const auto least = static_cast<std::uint64_t>(std::ceil(std::min(waited_ / (kWaiting * pace_), kMostBetweenWaits)));
    if (least > (out.epoch ? out.epoch : Sequence::kSteadyEpoch)) out.epoch = least;
  }
  return out;
}

Learner::Announcement Learner::announce(std::uint64_t n, bool dropped, Nanoseconds now, bool hurried) {
  Announcement out;
  if (n > asked_n_ && asked_n_ > 0) pace_ = static_cast<double>(now - asked_) / static_cast<double>(n - asked_n_);
  asked_n_ = n, asked_ = now;
  budget_ = kModelBudget;
  if (quiet_ && (hurried || next_ == looked_at_))
    return with_epoch(std::move(out), now, {});  // nothing is dispatched, and nothing new was seen
  if (hurried) {
    out.kind = announced_.empty() ? Announcement::Kind::none : Announcement::Kind::keep;
    return out;
  }
  looked_at_ = next_;
  find_period();
  note_shared_sizes();
  const auto slots = decided();
  for (Slot* slot : slots) {
    if (slot->calls == slot->decided_at && slot->why != Why::no_budget) continue;  // nothing new
    slot->decided_at = slot->calls;
    decide_slot(*slot);
  }
  Plan& plan = out.plan;
  // A plan that says nothing beyond what every rank decides by itself is none.
  bool says_anything = false;
  const auto add = [&](const Slot& slot, int trials, int rounds) {
    PlanEntry e = entry_for(slot, plan);
    if (e.algorithm >= 0 && trials > 0)
      e.trial = static_cast<std::uint16_t>(kTrial * trials), e.round = static_cast<std::uint16_t>(rounds);
    const Decision alone = decide(policy_, slot.signature, ranks_),
                   planned = decide_as(policy_, slot.signature, ranks_, e);
    const bool trivial =
        e.pattern < 0 && e.sizes < 0 && !e.edge && alone.algorithm == planned.algorithm &&
        (!planned.algorithm || (alone.segments == planned.segments && alone.overlap == planned.overlap));
    says_anything = says_anything || !trivial;
    plan.entries.push_back(e);
  };
  if (!policy_.decides_alone() &&
      std::all_of(slots.begin(), slots.end(), [](const Slot* slot) { return slot->algorithm < 0; })) {
    // Native everywhere, as without a plan.
  } else if (!slots_.empty()) {
    plan.period = slots_.size();
    plan.first = first_;
    for (const Slot* slot : slots) add(*slot, slot->on_trial, slot->round);
  } else {
    // Without a period the site of a coming call is not known: sites that share a signature have to agree.
    struct Shared {
      const Slot* chosen;
      bool agree = true;
      int trials = 0, rounds = 0;
    };
    std::map<std::uint64_t, Shared> by_signature;
    for (const Slot* slot : slots) {
      auto& [chosen, agree, trials, rounds] = by_signature.try_emplace(slot->hash, Shared{slot}).first->second;
      if (slot->on_trial) ++trials, rounds += slot->round;  // each has to see enough
      const bool same = chosen->algorithm == slot->algorithm && chosen->segments == slot->segments &&
                        chosen->overlap == slot->overlap && chosen->announced.empty() == slot->announced.empty() &&
                        (chosen->announced.empty() || !moved(chosen->announced, slot->announced)) &&
                        !resized(chosen->announced_sizes, slot->announced_sizes);
      agree = agree && same;
      if (slot->calls > chosen->calls) chosen = slot;
    }
    for (const auto& [hash, found] : by_signature)
      if (found.agree) add(*found.chosen, found.trials, found.rounds);
  }
  if (!says_anything) plan = {};
  out.kind = plan.empty()                     ? Announcement::Kind::none
             : plan == announced_ && !dropped ? Announcement::Kind::keep
                                              : Announcement::Kind::plan;
  if (out.kind == Announcement::Kind::plan) announced_ = plan;
  else if (out.kind == Announcement::Kind::none) announced_ = {};
  // Where ranks come from different sites, only logs know who came from where.
  quiet_ = policy_.rest && out.kind == Announcement::Kind::none && !slots.empty() && !divergent_ &&
           std::all_of(slots.begin(), slots.end(), [&](const Slot* slot) { return quiet(*slot); });
  glance_ = std::clamp<std::uint64_t>(slots.size(), kGlance, Sequence::kSteadyEpoch);
  return with_epoch(std::move(out), now, slots);
}

void Learner::in_force(std::uint64_t n) {
  for (Slot* slot : decided()) {
    if (!slot->changed) continue;
    slot->changed = false;
    slot->counts_from = n;
  }
}

std::vector<SlotReport> Learner::reports() const {
  std::vector<SlotReport> out;
  const bool elapsed = policy_.objective == Objective::mean_elapsed;
  for (const Slot* slot : decided()) {
    const Slot& s = *slot;
    SlotReport r;
    r.signature = s.signature, r.site = s.site, r.calls = s.calls, r.algorithm = s.algorithm,
    r.rule_line = s.rule ? s.rule->line : 0, r.forecast = s.forecast;
    r.predicted_ns = s.modelled, r.native_predicted_ns = s.native_modelled;
    if (s.current.enough()) r.measured_ns = elapsed ? s.current.median_elapsed() : s.current.median_after();
    if (s.native.enough()) r.native_measured_ns = elapsed ? s.native.median_elapsed() : s.native.median_after();
    r.model_fits = model_fits(s);
    r.candidates = s.candidates, r.messages = s.candidate_messages;
    if (s.why == Why::unknown) r.algorithm = index_of(decide(policy_, s.signature, ranks_).algorithm);
    r.reason = why_text(s);
    if (s.sizes_vary() && s.rule && s.rule->use.kind == Use::Kind::automatic)
      r.reason += "; no tree is planned from sizes: " + sizes_text(s);
    out.push_back(std::move(r));
  }
  return out;
}

}  // namespace latecomer::core

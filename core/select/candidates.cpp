// SPDX-License-Identifier: BSD-3-Clause
// Counting messages, and modelling candidates within a budget of them.
#include "core/select/candidates.hpp"

#include <algorithm>

#include "core/algorithms/clairvoyant/walk.hpp"
#include "core/base/text.hpp"
#include "core/model/closed_form.hpp"
#include "core/select/by_call.hpp"
#include "core/select/native.hpp"

namespace latecomer::core {
namespace {

/// A plan is made before it is modelled, which takes as long for each of its messages (`latecomer simulate --json`,
/// planning_ns).
constexpr std::int64_t kPlannedToo = 2;

/// One call's share of the time in which a rank computes a plan, at most once per epoch. Per message of the
/// plan, measured with `latecomer simulate` (planning_ns): 200 to 450 ns.
double planning_share_ns(const Algorithm& a, std::int64_t messages) {
  constexpr double kPerMessage = 300;
  return a.planning != Planning::none ? kPerMessage * static_cast<double>(messages) / static_cast<double>(kCallsOfPlan)
                                      : 0;
}

std::int64_t cost_of(const Algorithm& a, const Call& call, int segments, const Network& network) {
  const std::int64_t messages = messages_of(a, call, segments, network);
  return is_irregular(call.op) ? messages + planning_of(a, call, segments, network)
         : plans_segments(a)   ? kPlannedToo * messages
                               : messages;
}

/// `known`: schedules are built for the arrivals.
Instance instance_of(const Algorithm& a, int segments, const Call& call, const Pattern& arrivals, Parameters parameters,
                     bool known) {
  parameters.segments = segments;
  return Instance(call, a.uses_pattern() && known ? arrivals : Pattern(), std::move(parameters));
}

}  // namespace

std::optional<Played> play_call(const Algorithm& algorithm, int segments, bool closed_form, const Call& call,
                                const Pattern& arrivals, const Parameters& parameters, bool known) {
  const bool is_native = &algorithm == native_stand_in(call);
  Played out;
  if (closed_form) {
    Call counted = call;
    if (is_native) counted.ranks = native_ranks(call, parameters);
    const auto form = closed_form_after_last(algorithm, counted, segments, parameters.network, arrivals);
    if (!form) return {};
    double waits = 0;
    for (Rank r = 0; r < call.ranks; ++r) waits += static_cast<double>(arrivals.last() - arrivals.arrival(r));
    out.after_last = *form;
    out.mean_elapsed = *form + waits / call.ranks;
    return out;
  }
  // The background engine looks for messages every few milliseconds (shim/engine/thread.cpp). Measured on a virtual
  // machine, where a look costs most.
  constexpr double kReaction = 2.5e6;
  Network with_engine = parameters.network;
  with_engine.reaction_ns = kReaction;
  const Instance instance = instance_of(algorithm, segments, call, arrivals, parameters, known);
  auto run = is_native ? simulate_native(call, arrivals, instance.parameters)
                       : simulate(algorithm, instance, with_engine, arrivals);
  if (!run) return {};
  const double planning = planning_share_ns(algorithm, run->messages);
  out.after_last = static_cast<double>(run->after_last) + planning;
  out.mean_elapsed = run->mean_elapsed + planning;
  out.exits = std::move(run->finish);
  return out;
}

std::string left_out_text(const Candidates& candidates, int ranks) {
  std::string out;
  for (const LeftOut& l : candidates.left_out) {
    out += (out.empty() ? "" : "; ") + std::string(algorithm_at(l.algorithm).name);
    if (l.segments) out += " with " + std::to_string(l.segments) + " segments";
    out += l.messages == 0 ? ": plans too slowly for a running job"
                           : ": no budget at " + grouped(ranks) + " ranks: " + grouped(l.messages) + " messages, " +
                                 grouped(candidates.most) + " allowed";
  }
  return out;
}

CandidateSearch::CandidateSearch(const Call& call, Pattern pattern, Parameters parameters, Objective objective,
                                 bool known, std::int64_t most)
    : call_(call),
      pattern_(std::move(pattern)),
      parameters_(std::move(parameters)),
      objective_(objective),
      known_(known) {
  const Network& network = parameters_.network;
  found_.most = most;
  const int ranks = call.ranks;
  for (const Algorithm& a : catalogue()) {
    if (a.op != call.op) continue;
    // Where operands may come in any order, keeping them in one is of no use.
    if (is_reduction(call.op) && call.commutative && a.keeps_rank_order() && a.uses_pattern()) continue;
    if (a.planning == Planning::slow) {
      found_.left_out.push_back({index_of(&a), 0, 0});
      continue;
    }
    // A plan has as many segments as the budget allows. More segments than ranks: what is left after the last arrival
    // shrinks towards one vector's time.
    int segments = 0;
    if (plans_segments(a) && cost_of(a, call, 0, network) > most)
      if (const std::int64_t allowed = most / (kPlannedToo * planned_messages(call, 1));
          allowed >= fewest_segments(call))
        segments = static_cast<int>(allowed);
    want(a, segments, plans_segments(a) ? std::vector<int>{4 * ranks, 16 * ranks} : std::vector<int>{});
  }
}

void CandidateSearch::only(const Algorithm& algorithm, int segments) {
  trials_.clear();
  found_.left_out.clear();
  if (const Algorithm* native = native_stand_in(call_)) want(*native, 0);
  want(algorithm, segments);
}

void CandidateSearch::want(const Algorithm& a, int segments, std::vector<int> more, double before) {
  if (segments > 0 && (segments > kChannels || call_.count < segments)) return;
  if (std::any_of(trials_.begin(), trials_.end(),
                  [&](const Trial& t) { return t.algorithm == &a && t.segments == segments; }))
    return;
  std::int64_t cost = cost_of(a, call_, segments, parameters_.network);
  if (cost > found_.most) {
    const bool form = closed_form_after_last(a, call_, segments, parameters_.network, pattern_).has_value();
    // The reason names a number of segments that exceeds the budget only if no smaller number was compared.
    const bool fewer =
        before >= 0 || std::any_of(trials_.begin(), trials_.end(), [&](const Trial& t) { return t.algorithm == &a; });
    if (!form && !fewer) found_.left_out.push_back({index_of(&a), segments, cost});
    if (!form) return;
    cost = 0;
  }
  trials_.push_back({&a, segments, cost, std::move(more), before});
}

bool CandidateSearch::same_schedules(const Trial& trial, const Candidate& other) const {
  const Algorithm &a = *trial.algorithm, &b = algorithm_at(other.algorithm);
  const Instance one = instance_of(a, trial.segments, call_, pattern_, parameters_, known_),
                 two = instance_of(b, other.segments, call_, pattern_, parameters_, known_);
  const auto does = [](const Operation& op) { return op.in_round(-1); };  // rounds are for listings only
  for (Rank r = 0; r < call_.ranks; ++r)
    if (!std::ranges::equal(materialize(a, one, r).ops, materialize(b, two, r).ops, {}, does, does)) return false;
  return true;
}

void CandidateSearch::step() {
  const Trial t = std::move(trials_[next_++]);
  trials_[next_ - 1] = {t.algorithm, t.segments, t.cost};
  const bool is_native = t.algorithm == native_stand_in(call_), closed = t.cost == 0 && call_.ranks > 1;
  const auto played = play_call(*t.algorithm, t.segments, closed, call_, pattern_, parameters_, known_);
  found_.messages += t.cost;
  if (!played) return;
  const double ns = objective_ == Objective::mean_elapsed ? played->mean_elapsed : played->after_last;
  if (is_native) found_.native_ns = ns;
  Candidate found{index_of(t.algorithm), t.segments, ns, false, t.cost == 0};
  const auto same = std::ranges::find_if(found_.list, [&](const Candidate& c) {
    return c.modelled_ns == ns && !is_native && !found.closed_form && !c.closed_form && same_schedules(t, c);
  });
  if (same != found_.list.end()) found.same_as = same->same_as < 0 ? same->algorithm : same->same_as;
  found_.list.insert(
      std::upper_bound(found_.list.begin(), found_.list.end(), found,
                       [](const Candidate& x, const Candidate& y) { return x.modelled_ns < y.modelled_ns; }),
      found);
  // Model more segments only if the candidate is close to the best one and better than with fewer segments. Measured
  // in the model: reduce, allreduce and bcast, 8 to 32 ranks, 64 KiB to 4 MiB, 162 random patterns, fdr. Limits
  // of 1.2, 1.5 and 2 miss the best in 11, 3 and 1 of them, by 13% at most, and model 14%, 5% and 4% fewer messages
  // than no limit.
  constexpr double kNearBest = 1.5;
  if (best_ < 0 || ns < best_) best_ = ns;
  if (t.more.empty() || ns > kNearBest * best_ || (t.before >= 0 && ns >= t.before)) return;
  want(*t.algorithm, t.more.front(), {t.more.begin() + 1, t.more.end()}, ns);
}

Candidates model_candidates(const Call& call, const Pattern& pattern, const Parameters& parameters, Objective objective,
                            bool known, std::int64_t most) {
  CandidateSearch search(call, pattern, parameters, objective, known, most);
  while (!search.done()) search.step();
  return search.found();
}

}  // namespace latecomer::core

// SPDX-License-Identifier: BSD-3-Clause
// The sentences of a report: for every decision the finding, its figures, and a change that would change it.
#include "core/learning/explain.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "core/learning/decide.hpp"
#include "core/learning/forecast.hpp"
#include "core/learning/rota.hpp"

namespace latecomer::core {
namespace {

std::string percent(double share) { return std::to_string(static_cast<int>(100 * share + 0.5)) + "%"; }

std::string name_of_choice(int algorithm, int segments) {
  if (algorithm < 0) return "native";
  return std::string(algorithm_at(algorithm).name) +
         (segments ? " with " + std::to_string(segments) + " segments" : "");
}

std::string time_text(double ns) { return ns >= 1e6 ? fixed(ns / 1e6, 2) + " ms" : fixed(ns / 1e3, 1) + " us"; }

/// Describes block sizes that vary.
std::string describe_sizes(const Slot& slot) {
  if (slot.expected.varying)
    return std::to_string(slot.expected.count_surprises()) + " of the last " + std::to_string(slot.expected.seen) +
           " calls had other sizes than expected";
  return "another site has the same operation and root with other sizes, and which of the two comes next is not known";
}

/// Describes arrivals that no algorithm can use, with figures, and the figures from which one could.
std::string describe_arrivals(const Slot& slot) {
  const auto time = [](auto ns) { return time_text(static_cast<double>(ns)); };
  const SlotArrivals& arrivals = slot.arrivals;
  if (arrivals.seen == 0 || arrivals.forecast.offsets.empty()) return "no arrivals were seen yet";
  const auto calls = static_cast<double>(arrivals.seen);
  const auto most = std::max_element(arrivals.came_last.begin(), arrivals.came_last.end());
  const std::string imbalance = "from the first arrival to the last " + time(arrivals.imbalance / calls) +
                                " in the mean of " + grouped(static_cast<std::int64_t>(arrivals.seen)) + " calls";
  if (arrive_together(slot))
    return "arrivals are balanced: " + imbalance + "; at least " + time(least_saving(slot)) + " would be worth hiding";
  const std::string last = *most == 0 ? "all ranks arrived together in every call, "
                                      : "rank " + std::to_string(most - arrivals.came_last.begin()) + " came last in " +
                                            percent(*most / calls) + " of the calls, ";
  return "arrivals are not foreseen: " + last + imbalance + ", but forecasts of " + time(arrivals.forecast.spread) +
         " were off by " + time(arrivals.forecast.error) + "; off by less than " + time(arrivals.forecast.spread / 3) +
         " they would be used";
}

/// Lists the other candidates, and the algorithms that were not modelled.
std::string describe_candidates(const LearningTerms& terms, const Slot& slot) {
  const Objective objective = terms.policy.objective;
  Candidates some;
  some.left_out = slot.model.left_out;
  some.most = kMostInJob;
  std::string out;
  if (!model_fits(slot, objective))
    out += "; native's modelled time (" + time_text(slot.model.native_ns) + ") is no forecast here, measured " +
           time_text(slot.native.median(objective)) +
           " (ranks that share cores, or figures of another network): measurements alone choose";
  std::string forms;
  for (const Candidate& c : slot.model.candidates)
    if (c.closed_form) forms += (forms.empty() ? "" : ", ") + std::string(algorithm_at(c.algorithm).name);
  if (!forms.empty()) out += "; by closed form, for more than " + grouped(kMostInJob) + " messages: " + forms;
  if (const std::string left = left_out_text(some, terms.ranks); !left.empty()) out += "; left out: " + left;
  return out;
}

/// The words that follow "because" in a report: the finding, its present figures, and figures that would change it.
std::string describe_reason(const LearningTerms& terms, const Slot& slot) {
  const Objective objective = terms.policy.objective;
  const auto time = [](auto ns) { return time_text(static_cast<double>(ns)); };
  const std::string by = slot.rule ? "the rule at line " + std::to_string(slot.rule->line) : "";
  const Signature& s = slot.signature;
  const std::string name = name_of_choice(slot.algorithm, slot.segments);
  const std::string op(name_of(s.op));
  switch (slot.reason) {
    case Reason::unknown:
      return "nothing was decided yet: " + grouped(static_cast<std::int64_t>(slot.calls)) +
             " calls were seen, and a plan comes into force at a call that shows that the leader has passed "
             "(docs/explanation/agreement.md)";
    case Reason::unserved:
      if (s.kind != CallKind::blocking) return "it does not block: algorithms serve blocking calls only";
      if (!is_dispatched(s.op)) return "there is no algorithm for " + op + " in this version";
      return s.moves() ? "operator and datatype are no pair that MPI defines, so no schedule can reduce them"
                       : "it moves no bytes";
    case Reason::reproducible:
      return std::string("what is learnt may not change a rounding (`reproducible`)") +
             (slot.announced.empty() ? "" : "; arrivals only say what " + name + " does when");
    case Reason::no_rule:
      return "no rule matches " + op + " of " + (s.bytes < 0 ? "any size" : grouped(s.bytes) + " bytes") + " on " +
             grouped(terms.ranks) + " ranks from this site";
    case Reason::rule_native:
      return by + " says native";
    case Reason::rule_before_sizes:
      return by + " asks for " + slot.rule->use.algorithm +
             ", which needs the sizes of the blocks, and no call with all of them was seen yet";
    case Reason::rule_sizes_vary:
      return by + " asks for " + slot.rule->use.algorithm + ", but " + describe_sizes(slot) + ": " + name +
             ", which needs no sizes before the call";
    case Reason::rule_forbidden:
      return by + " asks for " + slot.rule->use.algorithm + ", which `reproducible` or the operator forbids";
    case Reason::rule_unplanned:
      return by + " asks for " + slot.rule->use.algorithm + ", but planning that takes " +
             grouped(decide_planned(terms, slot, index_of(find_algorithm(s.op, slot.rule->use.algorithm)),
                                    slot.rule->use.segments)
                         .planning) +
             " messages on " + grouped(terms.ranks) + " ranks, and " + grouped(kPlannedAhead) +
             " are allowed: " + name + (slot.rule->use.segments ? "; fewer segments take less" : "");
    case Reason::rule:
      return by + " asks for it";
    case Reason::rule_flat:
      return by + " asks for it, without a pattern: " + describe_arrivals(slot);
    case Reason::no_sizes:
      return "auto knows no sizes of blocks: no call with all of them was seen yet";
    case Reason::nothing_seen:
      return "auto has seen no arrivals yet";
    case Reason::balanced:
    case Reason::unforeseen:
      return "auto found that " + describe_arrivals(slot);
    case Reason::slight:
      return "auto found nothing to gain: arrivals spread over " + time(slot.arrivals.forecast.spread) +
             ", a call takes " + time(slot.native.median_after()) + " after the last; from " +
             time(least_saving(slot)) + " on it would look";
    case Reason::no_budget: {
      std::string out = "auto is still comparing, as before until then";
      if (!slot.model.search) return out;
      const std::int64_t next = slot.model.search->next_cost();
      const double needed =
          (slot.model.spent + SlotModeller::kMessage * static_cast<double>(next) - SlotModeller::kStake) /
          SlotModeller::kShare;
      out += ": " + std::to_string(slot.model.search->modelled()) + " candidates are modelled, the next takes " +
             grouped(next) + " messages";
      return out + (needed > slot.spent ? ", for which these calls have to take " + time(needed) + " in all (so far " +
                                              time(slot.spent) + ")"
                                        : ", at the next boundary");
    }
    case Reason::measuring:
      return "auto measures native first: " + std::to_string(slot.native.count()) + " of " +
             std::to_string(kFirstMeasured) + " calls";
    case Reason::tried: {
      std::string out = "auto compares algorithms in turn";
      for (const Runner& r : slot.rota.runners) {
        out += (&r == slot.rota.runners.data() ? ": " : ", ") + name_of_choice(r.algorithm, r.segments) + " (";
        out += r.measured.count() == 0 ? "no call yet"
                                       : time(r.measured.median(objective)) + " in the median of " +
                                             grouped(std::min(r.measured.count(), Samples::kKept)) + " calls";
        if (r.modelled >= 0) out += ", modelled " + time(r.modelled);
        out += ")";
      }
      return out + "; native modelled " + time(slot.model.native_ns) + describe_candidates(terms, slot);
    }
    case Reason::remembered:
      return "an earlier run measured that " + name + " wins" +
             (slot.earlier && slot.earlier->measured_ns >= 0
                  ? ": after the last arrival " + time(slot.earlier->measured_ns) + ", native " +
                        time(slot.earlier->native_measured_ns)
                  : "") +
             (slot.current.enough() ? "; in this run " + time(slot.current.median(objective)) : "");
    case Reason::won: {
      std::string out = "auto measured that " + name + " wins";
      if (slot.current.count() == 0) out += "; no call under the present plan is measured yet";
      else out += ": after the last arrival " + time(slot.current.median_after());
      if (slot.current.count() > 0 && slot.native.count() > 0) out += ", native " + time(slot.native.median_after());
      return out + describe_candidates(terms, slot);
    }
    case Reason::risk:
      return "auto's candidates here have cost " + time(slot.risked) + "; the next are tried when that is below " +
             percent(kRisk) + " of the time spent here (" + time(slot.spent) + ") and " +
             std::to_string(static_cast<int>(kStake)) + " native calls";
    case Reason::lost: {
      std::string tried;
      for (const Candidate& c : slot.model.candidates)
        if (c.lost)
          tried += (tried.empty() ? "" : ", ") + std::string(algorithm_at(c.algorithm).name) +
                   (c.segments ? " with " + std::to_string(c.segments) + " segments" : "");
      return "auto tried " + tried + ", which did not win against native's " + time(slot.native.median_after()) +
             "; not again until the pattern changes" + describe_candidates(terms, slot);
    }
    case Reason::nothing_serves:
      if (slot.model.left_out.empty())
        return "auto has no algorithm that may serve this call: `reproducible`, the operator or background.enabled "
               "forbid all of them";
      return "auto has no algorithm to compare" + describe_candidates(terms, slot);
    case Reason::no_gain: {
      const Candidate& best = slot.model.candidates.front();
      return "auto sees no gain worth trying: the best, " + std::string(algorithm_at(best.algorithm).name) +
             ", is modelled at " + time(best.modelled_ns) + ", native modelled " + time(slot.model.native_ns) +
             ", measured " + time(slot.native.median(objective)) + "; " + percent(1 - kWorthTrying) + " less and " +
             time(kDispatch) + " would be one" + describe_candidates(terms, slot);
    }
  }
  return "";
}

}  // namespace

SlotReport report_slot(const LearningTerms& terms, const Slot& slot) {
  const Objective objective = terms.policy.objective;
  SlotReport out;
  out.signature = slot.signature;
  out.site = slot.site;
  out.calls = slot.calls;
  out.algorithm = slot.algorithm;
  out.rule_line = slot.rule ? slot.rule->line : 0;
  out.forecast = slot.arrivals.forecast;
  out.predicted_ns = slot.model.chosen_ns;
  out.native_predicted_ns = slot.model.native_ns;
  if (slot.current.enough()) out.measured_ns = slot.current.median(objective);
  if (slot.native.enough()) out.native_measured_ns = slot.native.median(objective);
  out.model_fits = model_fits(slot, objective);
  out.candidates = slot.model.candidates;
  out.messages = slot.model.messages;
  if (slot.reason == Reason::unknown)
    out.algorithm = index_of(decide_call(terms.policy, slot.signature, terms.ranks).algorithm);
  out.reason = describe_reason(terms, slot);
  if (slot.sizes_vary() && slot.rule && slot.rule->use.kind == Use::Kind::automatic)
    out.reason += "; no tree is planned from sizes: " + describe_sizes(slot);
  return out;
}

}  // namespace latecomer::core

// SPDX-License-Identifier: BSD-3-Clause
// The sentences of a report: for every decision the finding, its figures, and what would change the decision.
#include <algorithm>
#include <cmath>

#include "core/base/text.hpp"
#include "core/learning/learner.hpp"

namespace latecomer::core {
namespace {

std::string percent(double share) { return std::to_string(static_cast<int>(100 * share + 0.5)) + "%"; }

std::string name_of_choice(int algorithm, int segments) {
  if (algorithm < 0) return "native";
  return std::string(algorithm_at(algorithm).name) +
         (segments ? " with " + std::to_string(segments) + " segments" : "");
}

std::string time_text(double ns) { return ns >= 1e6 ? fixed(ns / 1e6, 2) + " ms" : fixed(ns / 1e3, 1) + " us"; }

}  // namespace

/// Describes block sizes that vary.
std::string Learner::sizes_text(const Slot& slot) {
  if (slot.expected.varying)
    return std::to_string(slot.expected.missed()) + " of the last " + std::to_string(slot.expected.seen) +
           " calls had other sizes than expected";
  return "another site has the same operation and root with other sizes, and which of the two comes next is not known";
}

/// Describes arrivals that no algorithm can use, with figures, and what would change that.
std::string Learner::arrivals_text(const Slot& slot) const {
  const auto time = [](auto ns) { return time_text(static_cast<double>(ns)); };
  if (slot.seen == 0 || slot.forecast.offsets.empty()) return "no arrivals were seen yet";
  const auto calls = static_cast<double>(slot.seen);
  const auto most = std::max_element(slot.came_last.begin(), slot.came_last.end());
  const std::string imbalance = "from the first arrival to the last " + time(slot.imbalance / calls) +
                                " in the mean of " + grouped(static_cast<std::int64_t>(slot.seen)) + " calls";
  if (nearly_together(slot)) {
    const double needed =
        std::max(kDispatch, slot.native.enough() ? (1 - kWorthTrying) * slot.native.median_after() : 0);
    return "arrivals are balanced: " + imbalance + "; at least " + time(needed) + " would be worth hiding";
  }
  const std::string last = *most == 0 ? "all ranks arrived together in every call, "
                                      : "rank " + std::to_string(most - slot.came_last.begin()) + " came last in " +
                                            percent(*most / calls) + " of the calls, ";
  return "arrivals are not foreseen: " + last + imbalance + ", but forecasts of " + time(slot.forecast.spread) +
         " were off by " + time(slot.forecast.error) + "; off by less than " + time(slot.forecast.spread / 3) +
         " they would be used";
}

/// Lists the other candidates, and the algorithms that were not modelled.
std::string Learner::candidates_text(const Slot& slot) const {
  Candidates some;
  some.left_out = slot.left_out;
  some.most = kMostInJob;
  std::string out;
  if (!model_fits(slot))
    out += "; native's modelled time (" + time_text(slot.native_modelled) + ") is no forecast here, measured " +
           time_text(native_measured(slot)) +
           " (ranks that share cores, or figures of another network): measurements alone choose";
  std::string forms;
  for (const Candidate& c : slot.candidates)
    if (c.closed_form) forms += (forms.empty() ? "" : ", ") + std::string(algorithm_at(c.algorithm).name);
  if (!forms.empty()) out += "; by closed form, for more than " + grouped(kMostInJob) + " messages: " + forms;
  if (const std::string left = left_out_text(some, ranks_); !left.empty()) out += "; left out: " + left;
  return out;
}

/// The words that follow "because" in a report: the finding, its present figures, and what would change the decision.
std::string Learner::why_text(const Slot& slot) const {
  const auto time = [](auto ns) { return time_text(static_cast<double>(ns)); };
  const std::string by = slot.rule ? "the rule at line " + std::to_string(slot.rule->line) : "";
  const Signature& s = slot.signature;
  const std::string name = name_of_choice(slot.algorithm, slot.segments);
  const std::string op(name_of(s.op));
  switch (slot.why) {
    case Why::unknown:
      return "nothing was decided yet: " + grouped(static_cast<std::int64_t>(slot.calls)) +
             " calls were seen, and a plan comes into force at a call that shows that the leader has passed "
             "(docs/explanation/agreement.md)";
    case Why::unserved:
      if (s.kind != CallKind::blocking) return "it does not block: algorithms serve blocking calls only";
      if (!is_dispatched(s.op)) return "there is no algorithm for " + op + " in this version";
      return s.moves() ? "operator and datatype are no pair that MPI defines, so no schedule can reduce them"
                       : "it moves no bytes";
    case Why::reproducible:
      return std::string("what is learnt may not change a rounding (`reproducible`)") +
             (slot.announced.empty() ? "" : "; arrivals only say what " + name + " does when");
    case Why::no_rule:
      return "no rule matches " + op + " of " + (s.bytes < 0 ? "any size" : grouped(s.bytes) + " bytes") + " on " +
             grouped(ranks_) + " ranks from this site";
    case Why::rule_native:
      return by + " says native";
    case Why::rule_before_sizes:
      return by + " asks for " + slot.rule->use.algorithm +
             ", which needs the sizes of the blocks, and no call with all of them was seen yet";
    case Why::rule_sizes_vary:
      return by + " asks for " + slot.rule->use.algorithm + ", but " + sizes_text(slot) + ": " + name +
             ", which needs no sizes before the call";
    case Why::rule_forbidden:
      return by + " asks for " + slot.rule->use.algorithm + ", which `reproducible` or the operator forbids";
    case Why::rule_unplanned:
      return by + " asks for " + slot.rule->use.algorithm + ", but planning that takes " +
             grouped(decision(slot, index_of(find_algorithm(s.op, slot.rule->use.algorithm)), slot.rule->use.segments)
                         .planning) +
             " messages on " + grouped(ranks_) + " ranks, and " + grouped(kPlannedAhead) + " are allowed: " + name +
             (slot.rule->use.segments ? "; fewer segments take less" : "");
    case Why::rule:
      return by + " asks for it";
    case Why::rule_flat:
      return by + " asks for it, without a pattern: " + arrivals_text(slot);
    case Why::no_sizes:
      return "auto knows no sizes of blocks: no call with all of them was seen yet";
    case Why::nothing_seen:
      return "auto has seen no arrivals yet";
    case Why::balanced:
    case Why::unforeseen:
      return "auto found that " + arrivals_text(slot);
    case Why::slight: {
      const double needed = std::max(kDispatch, (1 - kWorthTrying) * slot.native.median_after());
      return "auto found nothing to gain: arrivals spread over " + time(slot.forecast.spread) + ", a call takes " +
             time(slot.native.median_after()) + " after the last; from " + time(needed) + " on it would look";
    }
    case Why::no_budget: {
      std::string out = "auto is still comparing, as before until then";
      if (!slot.search) return out;
      const std::int64_t next = slot.search->next_cost();
      const double needed = (slot.modelling + kModelMessage * static_cast<double>(next) - kModelStake) / kModelShare;
      out += ": " + std::to_string(slot.search->modelled()) + " candidates are modelled, the next takes " +
             grouped(next) + " messages";
      return out + (needed > slot.spent ? ", for which these calls have to take " + time(needed) + " in all (so far " +
                                              time(slot.spent) + ")"
                                        : ", at the next boundary");
    }
    case Why::measuring:
      return "auto measures native first: " + std::to_string(slot.native.count) + " of " + std::to_string(kFirst) +
             " calls";
    case Why::tried: {
      std::string out = "auto compares algorithms in turn";
      for (const Runner& r : slot.rota.runners) {
        out += (&r == slot.rota.runners.data() ? ": " : ", ") + name_of_choice(r.algorithm, r.segments) + " (";
        out += r.measured.count == 0 ? "no call yet"
                                     : time(median_of(r.measured)) + " in the median of " +
                                           grouped(std::min(r.measured.count, Samples::kKept)) + " calls";
        if (r.modelled >= 0) out += ", modelled " + time(r.modelled);
        out += ")";
      }
      return out + "; native modelled " + time(slot.native_modelled) + candidates_text(slot);
    }
    case Why::remembered:
      return "an earlier run measured that " + name + " wins" +
             (slot.earlier && slot.earlier->measured_ns >= 0
                  ? ": after the last arrival " + time(slot.earlier->measured_ns) + ", native " +
                        time(slot.earlier->native_measured_ns)
                  : "") +
             (slot.current.enough() ? "; in this run " + time(median_of(slot.current)) : "");
    case Why::won: {
      std::string out = "auto measured that " + name + " wins";
      if (slot.current.count == 0) out += "; no call under the present plan is measured yet";
      else out += ": after the last arrival " + time(slot.current.median_after());
      if (slot.current.count > 0 && slot.native.count > 0) out += ", native " + time(slot.native.median_after());
      return out + candidates_text(slot);
    }
    case Why::risk:
      return "auto's candidates here have cost " + time(slot.risked) + "; the next are tried when that is below " +
             percent(kRisk) + " of the time spent here (" + time(slot.spent) + ") and " +
             std::to_string(static_cast<int>(kStake)) + " native calls";
    case Why::lost: {
      std::string tried;
      for (const Candidate& c : slot.candidates)
        if (c.lost)
          tried += (tried.empty() ? "" : ", ") + std::string(algorithm_at(c.algorithm).name) +
                   (c.segments ? " with " + std::to_string(c.segments) + " segments" : "");
      return "auto tried " + tried + ", which did not win against native's " + time(slot.native.median_after()) +
             "; not again until the pattern changes" + candidates_text(slot);
    }
    case Why::nothing_serves:
      if (slot.left_out.empty())
        return "auto has no algorithm that may serve this call: `reproducible`, the operator or background.enabled "
               "forbid all of them";
      return "auto has no algorithm to compare" + candidates_text(slot);
    case Why::no_gain: {
      const Candidate& best = slot.candidates.front();
      return "auto sees no gain worth trying: the best, " + std::string(algorithm_at(best.algorithm).name) +
             ", is modelled at " + time(best.modelled_ns) + ", native modelled " + time(slot.native_modelled) +
             ", measured " + time(native_measured(slot)) + "; " + percent(1 - kWorthTrying) + " less and " +
             time(kDispatch) + " would be one" + candidates_text(slot);
    }
  }
  return "";
}

}  // namespace latecomer::core

// SPDX-License-Identifier: BSD-3-Clause
// The review of valid rules: it finds rules without effect, and rules that come into force late or serve a part of
// their calls. It must not reject a policy.
#include "core/policy/review.hpp"

#include <algorithm>
#include <string>

namespace latecomer::core {
namespace {

void add_problem(PolicyReport& report, int line, const std::string& path, const std::string& message) {
  report.notes.push_back({line, path, message});
}

template <typename T>
bool list_covers(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.empty()) return true;
  return !b.empty() &&
         std::all_of(b.begin(), b.end(), [&](T x) { return std::find(a.begin(), a.end(), x) != a.end(); });
}

void find_dead_rules(PolicyReport& report) {
  for (std::size_t i = 0; i < report.policy.rules.size(); ++i) {
    const Match& m = report.policy.rules[i].match;
    const std::string path = "rules[" + std::to_string(i) + "]";
    if (!m.op_classes.empty() && !m.ops.empty() && std::none_of(m.ops.begin(), m.ops.end(), is_reduction))
      add_problem(report, report.policy.rules[i].line, path,
                  "can never match: op_class is given, but op is not a reduction");
    if (!m.root.all() && !m.ops.empty() && std::none_of(m.ops.begin(), m.ops.end(), is_rooted))
      add_problem(report, report.policy.rules[i].line, path, "can never match: root is given, but op has no root");
    for (std::size_t j = 0; j < i; ++j) {
      const Match& e = report.policy.rules[j].match;
      const bool same_condition = e.universal() || (e.site == m.site && e.imbalance_factor.covers(m.imbalance_factor));
      if (same_condition && list_covers(e.ops, m.ops) && list_covers(e.op_classes, m.op_classes) &&
          e.bytes.covers(m.bytes) && e.comm_size.covers(m.comm_size) && e.root.covers(m.root)) {
        add_problem(report, report.policy.rules[i].line, path,
                    "can never match: rules[" + std::to_string(j) + "] (line " +
                        std::to_string(report.policy.rules[j].line) + ") matches all its calls first");
        break;
      }
    }
  }
}

/// Warns about rules that come into force with a plan, which brings sites, forecasts or block sizes.
void find_late_rules(PolicyReport& report) {
  for (std::size_t i = 0; i < report.policy.rules.size(); ++i) {
    const Rule& rule = report.policy.rules[i];
    const auto warn = [&](const std::string& why) {
      report.warnings.push_back({rule.line, "rules[" + std::to_string(i) + "]",
                                 "comes into force only with a plan, at call 32 of a communicator at the earliest: " +
                                     why + "; until then, the other rules decide, or the call stays native"});
    };
    if (!rule.match.site.empty()) warn("only a plan tells all ranks the site of a call (match.site)");
    if (!rule.match.imbalance_factor.all())
      warn(report.policy.network_given || report.policy.network_measure
               ? "latecomer must observe the imbalance first (match.imbalance_factor)"
               : "latecomer must observe the imbalance first, and without \"network\" its factor is never known "
                 "(match.imbalance_factor)");
    for (const Collective op : rule.match.ops)
      if (const Algorithm* a = rule.use.kind == Use::Kind::algorithm ? find_algorithm(op, rule.use.algorithm) : nullptr;
          a && a->needs_sizes)
        warn(std::string(name_of(op)) + " " + rule.use.algorithm +
             " needs the sizes of all blocks, which a plan brings; adaptive does not need them");
  }
}

/// A policy whose rules would replace calls, in a mode that applies no rule.
void find_mode(PolicyReport& report) {
  const Policy& policy = report.policy;
  if (policy.mode == Mode::apply) return;
  for (const Rule& rule : policy.rules) {
    if (rule.use.kind == Use::Kind::native) continue;
    return add_problem(report, rule.line, "rules",
                       "can never apply: the mode is \"" + std::string(policy.mode == Mode::off ? "off" : "observe") +
                           "\"; write \"mode\": \"apply\"");
  }
}

/// Warns about algorithms that `reproducible` keeps from calls that round.
void find_irreproducible_rules(PolicyReport& report) {
  const Policy& policy = report.policy;
  if (policy.mode != Mode::apply || policy.reproducible == Reproducible::any) return;
  const bool run = policy.reproducible == Reproducible::run;
  for (std::size_t i = 0; i < policy.rules.size(); ++i) {
    const Rule& rule = policy.rules[i];
    for (const Collective op : rule.match.ops) {
      const Algorithm* a = rule.use.kind == Use::Kind::algorithm ? find_algorithm(op, rule.use.algorithm) : nullptr;
      if (!a || !is_reduction(op) || (run && a->pattern_independent())) continue;
      std::string others;
      for (const std::string_view name : algorithm_names(op))
        if (run && find_algorithm(op, name)->pattern_independent())
          others += (others.empty() ? "" : ", ") + std::string(name);
      report.warnings.push_back(
          {rule.line, "rules[" + std::to_string(i) + "]",
           "serves only operators that never round, such as integers, min and max; other calls stay native: " +
               (run ? rule.use.algorithm +
                          " adds in the order of arrivals, which \"reproducible\": \"run\" forbids; "
                          "allowed for them: " +
                          others
                    : "\"reproducible\": \"native\" allows them no algorithm")});
    }
  }
}

}  // namespace

void review_rules(PolicyReport& report) {
  find_mode(report);
  find_dead_rules(report);
  find_late_rules(report);
  find_irreproducible_rules(report);
}

}  // namespace latecomer::core

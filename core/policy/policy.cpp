// SPDX-License-Identifier: BSD-3-Clause
// The matching of rules against calls. This file must not read a policy.
#include "core/policy/policy.hpp"

#include <algorithm>

namespace latecomer::core {

bool Policy::wants_plans() const {
  for (const Rule& rule : rules) {
    if (rule.use.kind == Use::Kind::automatic || !rule.match.universal()) return true;
    for (const Collective op : rule.match.ops)
      if (const Algorithm* a = find_algorithm(op, rule.use.algorithm); a && a->uses_pattern()) return true;
  }
  return false;
}

bool Policy::decides_alone() const {
  return std::any_of(rules.begin(), rules.end(),
                     [](const Rule& r) { return r.use.kind == Use::Kind::algorithm && r.match.universal(); });
}

bool may_match(const Match& m, const CallProperties& facts) {
  const auto listed = [](const auto& list, auto value) {
    return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
  };
  return listed(m.ops, facts.op) && listed(m.op_classes, facts.op_class) &&
         (m.bytes.all() || (facts.bytes >= 0 && m.bytes.contains(static_cast<double>(facts.bytes)))) &&
         m.comm_size.contains(facts.comm_size) && (m.root.all() || (facts.root >= 0 && m.root.contains(facts.root)));
}

const Rule* first_match(const Policy& policy, const CallProperties& facts,
                        const std::function<bool(const Match&)>& learnt) {
  for (const Rule& rule : policy.rules)
    if ((rule.match.universal() || (learnt && learnt(rule.match))) && may_match(rule.match, facts)) return &rule;
  return nullptr;
}

}  // namespace latecomer::core

// SPDX-License-Identifier: BSD-3-Clause
// The policy of the whole job, which is rank 0's.
#include "core/base/text.hpp"
#include "shim/job/parts.hpp"
#include "shim/log.hpp"

namespace latecomer::shim {
namespace {

/// On rank 0, the text of a valid policy, else "".
std::string load_policy(const Environment& environment) {
  if (environment.policy.empty()) return "";
  const OwnPolicy& own = own_policy(environment);
  if (!own.good) {
    warn("%s: cannot be read; observing only", environment.policy.c_str());
    return "";
  }
  const auto& report = own.report;
  if (report.ok()) {
    for (const auto& n : report.notes)
      say(1, "%s:%d: %s: %s", environment.policy.c_str(), n.line, n.path.c_str(), n.message.c_str());
    return own.text;
  }
  const auto& p = report.problems.front();
  std::string more;
  if (report.problems.size() > 1)
    more = "; and " + std::to_string(report.problems.size() - 1) + " more; run latecomer check";
  warn("%s:%d: %s%s%s%s; observing only", environment.policy.c_str(), p.line, p.path.c_str(),
       p.path.empty() ? "" : ": ", p.message.c_str(), more.c_str());
  return "";
}

}  // namespace

const OwnPolicy& own_policy(const Environment& environment) {
  static const OwnPolicy* const read = [&] {
    auto* own = new OwnPolicy;
    if (environment.policy.empty()) return own;
    own->good = environment.policy.starts_with("{");
    own->text = own->good ? environment.policy : read_text(environment.policy, own->good);
    if (own->good) own->report = core::parse_policy(own->text);
    return own;
  }();
  return *read;
}

void share_policy(Job& j) {
  std::string text = j.rank == 0 ? load_policy(j.environment) : "";
  share(j, text);
  const core::Policy* own = own_policy(j.environment).policy();
  j.policy = own && own_policy(j.environment).text == text
                 ? *own
                 : core::parse_policy(text.empty() ? "{\"version\": 1}" : text).policy;
  std::uint64_t key = core::mix64(static_cast<std::uint64_t>(j.started) ^ static_cast<std::uint64_t>(j.pid) << 40) | 1;
  PMPI_Bcast(&key, 1, MPI_UINT64_T, 0, j.comm);
  j.mine.job_key = key;
  int checks = j.environment.check;
  PMPI_Bcast(&checks, 1, MPI_INT, 0, j.comm);
  j.checks = checks != 0;
}

void note_forced_rules(Job& j) {
  for (const core::Rule& rule : j.policy.rules)
    for (const core::Collective op : rule.match.ops)
      if (const core::Algorithm* a =
              rule.use.kind == core::Use::Kind::algorithm ? core::find_algorithm(op, rule.use.algorithm) : nullptr)
        j.mine.job.forced.push_back({core::index_of(a), rule.line, rule.match.bytes, rule.match.comm_size});
}

}  // namespace latecomer::shim

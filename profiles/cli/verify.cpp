// SPDX-License-Identifier: BSD-3-Clause
// `latecomer verify`: the symbolic verifier over ranges of ranks, roots, counts and patterns.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/text.hpp"
#include "core/schedule/verify.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"

namespace latecomer::cli {
namespace {

struct Options {
  std::string op = "allreduce", algorithm = "all", ranks = "1-17", roots = "0", arrivals;
  bool json = false;
};

int verify(const Options& o) {
  const core::Collective op = collective_named(o.op);
  const auto algorithms = algorithms_named(op, o.algorithm);
  const auto list = core::parse_list(o.ranks);
  if (!list) throw BadUsage("--ranks: " + list.error());
  if (list->front() < 1) throw BadUsage("--ranks: expected at least 1 rank");
  std::vector<int> roots{0};
  if (o.roots != "all") {
    const auto given = core::parse_list(o.roots);
    if (!given) throw BadUsage("--roots: " + given.error() + " (or all)");
    roots = *given;
  }
  std::int64_t cases = 0;
  std::vector<core::SweepFailure> failures;
  for (const int ranks : *list) {
    std::vector<core::Pattern> patterns;
    if (!o.arrivals.empty()) {
      auto pattern = core::parse_arrivals(o.arrivals, ranks);
      if (!pattern) throw BadUsage("--arrivals: " + pattern.error());
      patterns.push_back(*pattern);
    }
    for (const core::Algorithm* algorithm : algorithms) {
      for (int root = 0; root < ranks; ++root) {
        if (core::is_rooted(op) ? (o.roots != "all" && std::find(roots.begin(), roots.end(), root) == roots.end()) : root > 0)
          continue;
        auto result = core::sweep(*algorithm, ranks, root, patterns);
        cases += result.cases;
        failures.insert(failures.end(), result.failures.begin(), result.failures.end());
      }
    }
  }
  if (o.json) {
    nlohmann::ordered_json out{{"ok", failures.empty()}, {"cases", cases}, {"failures", nlohmann::ordered_json::array()}};
    for (const auto& f : failures)
      out["failures"].push_back({{"algorithm", f.algorithm}, {"ranks", f.ranks}, {"root", f.root}, {"what", f.what}});
    std::printf("%s\n", out.dump(2).c_str());
  } else {
    for (const auto& f : failures)
      std::printf("%s, %d ranks, root %d: %s\n", f.algorithm.c_str(), f.ranks, f.root, f.what.c_str());
    std::printf("%lld cases, %zu failures\n", static_cast<long long>(cases), failures.size());
  }
  return failures.empty() ? 0 : 1;
}

}  // namespace

void add_verify(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("verify", "Prove schedules right for every interleaving, or name the fault");
  auto o = std::make_shared<Options>();
  command->add_option("--op", o->op, "collective")->capture_default_str();
  command->add_option("--algorithm", o->algorithm, "name, or all")->capture_default_str();
  command->add_option("--ranks", o->ranks, "list such as 1-17,32")->capture_default_str();
  command->add_option("--roots", o->roots, "list of roots, or all")->capture_default_str();
  command->add_option("--arrivals", o->arrivals, "one arrival pattern instead of the built-in set");
  command->add_flag("--json", o->json, "machine-readable answer");
  command->callback([o, &action] { action = [o] { return verify(*o); }; });
}

}  // namespace latecomer::cli

// SPDX-License-Identifier: BSD-3-Clause
// `latecomer verify`: runs the symbolic verifier over ranks, roots, counts and arrival patterns.
#include "core/verify/verify.hpp"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/text.hpp"
#include "profiles/base/json.hpp"
#include "profiles/base/progress.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"

namespace latecomer::profiles::cli {
namespace {

struct VerifyOptions {
  std::string op = "allreduce", algorithm = "all", ranks = "1-17", roots = "0", arrivals;
  Progress::Patience patience;
  bool json = false;
};

int verify(const VerifyOptions& o) {
  const core::Collective op = collective_named(o.op);
  const auto algorithms = algorithms_named(op, o.algorithm);
  const auto list = core::parse_list(o.ranks);
  if (!list) throw BadUsage("--ranks: " + list.error());
  if (list->front() < 1) throw BadUsage("--ranks: expected at least 1 rank");
  std::vector<int> roots{0};
  if (o.roots != "all") {
    const auto given = core::parse_list(o.roots);
    if (!given) throw BadUsage("--roots: " + given.error() + ", or all");
    roots = *given;
  }
  struct Part {
    const core::Algorithm* algorithm;
    int ranks;
    core::Rank root;
    const std::vector<core::Pattern>* patterns;
  };
  std::vector<Part> parts;
  std::deque<std::vector<core::Pattern>> patterns;  // one for each number of ranks
  for (const int ranks : *list) {
    auto& here = patterns.emplace_back();
    if (!o.arrivals.empty()) {
      auto pattern = core::parse_arrivals(o.arrivals, ranks);
      if (!pattern) throw BadUsage("--arrivals: " + pattern.error());
      here.push_back(*pattern);
    }
    for (const core::Algorithm* algorithm : algorithms)
      for (int root = 0; root < (core::is_rooted(op) ? ranks : 1); ++root)
        if (!core::is_rooted(op) || o.roots == "all" || std::ranges::find(roots, root) != roots.end())
          parts.push_back({algorithm, ranks, root, &here});
  }

  // The parts are independent, so each thread takes the next one. Results keep the order of parts.
  std::vector<core::SweepResult> results(parts.size());
  std::atomic<std::size_t> next{0}, ended{0};
  {
    take_interrupt();
    Progress progress("verifying " + o.op, static_cast<std::int64_t>(parts.size()), o.patience);
    const auto work = [&] {
      for (std::size_t i; !interrupted() && (i = next.fetch_add(1)) < parts.size();) {
        progress.begin(std::string(parts[i].algorithm->name) + " on " + std::to_string(parts[i].ranks) + " ranks");
        results[i] = core::sweep(*parts[i].algorithm, parts[i].ranks, parts[i].root, *parts[i].patterns);
        progress.done();
        ended.fetch_add(1);
      }
    };
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
    work();
  }
  std::int64_t cases = 0;
  std::vector<core::SweepFailure> failures;
  for (const auto& result : results) {
    cases += result.cases;
    failures.insert(failures.end(), result.failures.begin(), result.failures.end());
  }
  const bool whole = ended == parts.size();
  if (o.json) {
    nlohmann::ordered_json out{
        {"ok", whole && failures.empty()}, {"cases", cases}, {"failures", nlohmann::ordered_json::array()}};
    for (const auto& f : failures)
      out["failures"].push_back({{"algorithm", f.algorithm}, {"ranks", f.ranks}, {"root", f.root}, {"what", f.what}});
    print_answer(out);
  } else {
    for (const auto& f : failures)
      std::printf("%s, %d ranks, root %d: %s\n", f.algorithm.c_str(), f.ranks, f.root, f.what.c_str());
    std::printf("%lld cases, %zu failures\n", static_cast<long long>(cases), failures.size());
  }
  if (!whole) std::fprintf(stderr, "latecomer: interrupted after %zu of %zu parts\n", ended.load(), parts.size());
  return !whole ? 128 + SIGINT : failures.empty() ? 0 : 1;
}

}  // namespace

void add_verify(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("verify", "Prove that schedules are right in every order of events, or name the fault");
  auto o = std::make_shared<VerifyOptions>();
  command->add_option("--op", o->op, "Collective.")->capture_default_str();
  command->add_option("--algorithm", o->algorithm, "Name of an algorithm, or all.")->capture_default_str();
  command->add_option("--ranks", o->ranks, "Numbers of ranks, such as 1-17,32.")->capture_default_str();
  command->add_option("--roots", o->roots, "Roots, such as 0,3, or all.")->capture_default_str();
  command->add_option("--arrivals", o->arrivals,
                      "Arrival times to use instead of the built-in set, as for latecomer simulate.");
  Progress::add_option(*command, o->patience);
  command->add_flag("--json", o->json, "Print the answer as JSON.");
  command->footer(
      R"(The answer has one line per fault: algorithm, ranks, root, and the fault with its place. The numbers of cases and failures follow.
A case is one choice of algorithm, ranks, root, count, MPI_IN_PLACE, operator, segments and arrival pattern. Ctrl-C prints the faults
found so far.

Examples:
  $ latecomer verify --op allreduce --algorithm all --ranks 1-33
  $ latecomer verify --op reduce --algorithm clairvoyant --ranks 8 --roots all)");
  command->callback([o, &action] { action = [o] { return verify(*o); }; });
}

}  // namespace latecomer::profiles::cli

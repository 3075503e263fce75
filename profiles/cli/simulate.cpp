// SPDX-License-Identifier: BSD-3-Clause
// `latecomer simulate`: models the times of algorithms for an arrival pattern and a network.
#include "core/model/simulate.hpp"

#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/text.hpp"
#include "core/model/bounds.hpp"
#include "core/verify/verify.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"
#include "profiles/cli/progress.hpp"

namespace latecomer::cli {
namespace {

struct Options {
  std::string op = "allreduce", algorithm = "all", bytes, sizes, arrivals = "balanced", forecast,
              network = "tryton2018";
  int ranks = 0, segments = 0;
  core::Rank root = 0;
  core::Bytes element = 1;
  double jitter = 0;
  std::uint64_t seed = 1;
  Progress::Patience patience;
  bool lockstep = false, json = false;
};

int simulate(const Options& o) {
  const core::Collective op = collective_named(o.op);
  const auto algorithms = algorithms_named(op, o.algorithm);
  core::Parameters parameters;
  for (const double size : o.sizes.empty() ? std::vector<double>{} : sizes_named(o.sizes))
    parameters.sizes.push_back(static_cast<core::Bytes>(size));
  if (!parameters.sizes.empty() && !core::is_irregular(op))
    throw BadUsage("--sizes: all blocks of " + o.op + " have one size; expected --op gatherv or scatterv");
  if (!parameters.sizes.empty() && parameters.sizes.size() != static_cast<std::size_t>(o.ranks))
    throw BadUsage("--sizes: expected " + std::to_string(o.ranks) + " sizes, one per rank, got " +
                   std::to_string(parameters.sizes.size()));
  if (o.bytes.empty() && parameters.sizes.empty())
    throw BadUsage("--bytes: expected the payload, such as 4MiB" +
                   std::string(core::is_irregular(op) ? "; or --sizes" : ""));
  const auto bytes = core::parse_bytes(o.bytes.empty() ? "0" : o.bytes);
  if (!bytes) throw BadUsage("--bytes: " + bytes.error());
  if (o.root >= o.ranks) throw BadUsage("--root: expected a rank below " + std::to_string(o.ranks));
  const auto arrivals = core::parse_arrivals(o.arrivals, o.ranks);
  if (!arrivals) throw BadUsage("--arrivals: " + arrivals.error());
  const auto forecast = core::parse_arrivals(o.forecast.empty() ? o.arrivals : o.forecast, o.ranks);
  if (!forecast) throw BadUsage("--forecast: " + forecast.error());
  const auto network = core::parse_network(o.network);
  if (!network) throw BadUsage("--network: " + network.error());

  core::Call call;
  call.op = op, call.ranks = o.ranks, call.root = o.root;
  call.element_bytes = o.element, call.count = *bytes / o.element / (core::has_blocks(op) ? o.ranks : 1);
  if (core::is_irregular(op)) call.element_bytes = std::max<core::Bytes>(1, *bytes / o.ranks), call.count = 1;
  parameters.segments = o.segments, parameters.overlap = !o.lockstep, parameters.network = *network;

  const core::LowerBound bound = core::lower_bound(call, *network, *arrivals, parameters.sizes);
  const core::Jitter jitter{o.jitter, o.seed};
  const core::Nanoseconds least = core::least_after_last(call, *network, *arrivals, parameters.sizes);
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  if (!o.json)
    std::printf("%-20s %14s %14s %14s %10s\n", o.op.c_str(), "run time", "mean elapsed", "after last", "messages");
  Progress progress("simulating " + o.op + ", algorithms", static_cast<std::int64_t>(algorithms.size()), o.patience);
  for (const core::Algorithm* algorithm : algorithms) {
    progress.begin(std::string(algorithm->name));
    const auto before = std::chrono::steady_clock::now();
    const core::Instance instance(call, *forecast, parameters);
    for (auto schedule = algorithm->build(instance, 0); schedule.next();) {
    }
    const auto planning = std::chrono::steady_clock::now() - before;
    const auto result = core::simulate(*algorithm, instance, *network, *arrivals, core::kLookahead, jitter);
    if (!result) throw std::runtime_error(std::string(algorithm->name) + ": " + result.error());
    progress.done();
    if (o.json) {
      results.push_back({{"algorithm", algorithm->name},
                         {"run_time_ns", result->run_time},
                         {"mean_elapsed_ns", static_cast<std::int64_t>(result->mean_elapsed + 0.5)},
                         {"after_last_ns", result->after_last},
                         {"messages", result->messages},
                         {"planning_ns", std::chrono::nanoseconds(planning).count()}});
    } else {
      std::printf("%-20s %14s %14s %14s %10lld\n", std::string(algorithm->name).c_str(),
                  human_time(static_cast<double>(result->run_time)).c_str(), human_time(result->mean_elapsed).c_str(),
                  human_time(static_cast<double>(result->after_last)).c_str(),
                  static_cast<long long>(result->messages));
    }
  }
  if (o.json) {
    nlohmann::ordered_json out;
    out["lower_bound_ns"] = bound.known ? nlohmann::ordered_json(bound.after_last) : nullptr;
    out["lower_bound_run_time_ns"] = bound.known ? nlohmann::ordered_json(bound.run_time) : nullptr;
    out["results"] = results;
    std::printf("%s\n", out.dump(2).c_str());
  } else if (bound.known) {
    std::printf("%-20s %14s %14s %14s\n", "lower bound", human_time(static_cast<double>(bound.run_time)).c_str(), "",
                human_time(static_cast<double>(bound.after_last)).c_str());
    // This bound includes the waiting times of ports and processors (core/model/bounds.hpp).
    if (least > bound.after_last)
      std::printf("%-20s %14s %14s %14s\n", "sharper bound", "", "", human_time(static_cast<double>(least)).c_str());
  }
  return 0;
}

}  // namespace

void add_simulate(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("simulate", "Compute modelled times of algorithms under an arrival pattern");
  auto o = std::make_shared<Options>();
  command->add_option("--op", o->op, "Collective.")->capture_default_str();
  command->add_option("--algorithm", o->algorithm, "Name of an algorithm, or all.")->capture_default_str();
  command->add_option("--ranks", o->ranks, "Number of ranks.")->required()->check(CLI::Range(1, 1 << 20));
  command->add_option(
      "--bytes", o->bytes,
      "Payload, such as 4MiB. allreduce, reduce, bcast: the vector. scatter, gather: the total of the root.");
  command->add_option("--sizes", o->sizes,
                      "Size of the block of each rank for gatherv and scatterv, as for latecomer plan tree.");
  command->add_option("--element", o->element, "Bytes of an element. Elements are never split.")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option(
          "--arrivals", o->arrivals,
          "Arrival times: balanced, onelate:RANK:50ms, randlate:50ms:SEED, ascending:50ms, descending:50ms, or "
          "file:PATH with a time in seconds per line.")
      ->capture_default_str();
  command->add_option("--forecast", o->forecast,
                      "Arrival times that algorithms plan for. Default: the times of --arrivals.");
  command
      ->add_option(
          "--jitter", o->jitter,
          "Share of each message's time on the network that is random, with the same mean. Plans do not include "
          "it.")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--seed", o->seed, "Seed of --jitter.")->capture_default_str();
  command->add_option("--root", o->root, "Rank of the root.")->check(CLI::NonNegativeNumber);
  command->add_option("--segments", o->segments, "Number of segments. Default: the choice of the algorithm.")
      ->check(CLI::Range(1, 1 << 24));
  command
      ->add_option("--network", o->network,
                   "Network: tryton2018, eth1g, fdr, hdr, or figures such as alpha=25us,beta=8ns/B. With "
                   "ports=exclusive, a message that finds its receiver's port busy holds its sender's port.")
      ->capture_default_str();
  command->add_flag("--lockstep", o->lockstep, "Begin each step only after the previous one, as in the publications.");
  Progress::add_option(*command, o->patience);
  command->add_flag("--json", o->json, "Print the answer as JSON.");
  command->footer(R"(Columns of the table, one row per algorithm:
  run time      first arrival to last exit
  mean elapsed  arrival to exit, mean over ranks
  after last    last arrival to last exit
  messages      messages of all ranks together
No algorithm is faster than the row 'lower bound'. The row 'sharper bound' also counts late ports and processors.

Examples:
  $ latecomer simulate --op allreduce --ranks 48 --bytes 4MiB --arrivals onelate:1:50ms
  $ latecomer simulate --op gatherv --ranks 64 --sizes skewed:64:100000 --network hdr,overhead=0.5us)");
  command->callback([o, &action] { action = [o] { return simulate(*o); }; });
}

}  // namespace latecomer::cli

// SPDX-License-Identifier: BSD-3-Clause
// `latecomer simulate`: models the times of algorithms for an arrival pattern and a network.
#include "core/model/simulate.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/algorithms/segments.hpp"
#include "core/base/text.hpp"
#include "core/model/bounds.hpp"
#include "core/select/by_call.hpp"
#include "core/select/native.hpp"
#include "profiles/base/json.hpp"
#include "profiles/base/progress.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"

namespace latecomer::profiles::cli {
namespace {

struct SimulateOptions {
  std::string op = "allreduce", algorithm = "all", bytes, sizes, arrivals = "balanced", forecast,
              network = "tryton2018";
  std::string placement = "block";
  int ranks = 0, segments = 0, per_host = 0;
  core::Rank root = 0;
  core::Bytes element = 1;
  double jitter = 0;
  std::uint64_t seed = 1;
  Progress::Patience patience;
  bool lockstep = false, json = false;
};

/// The host of each rank.
std::vector<int> hosts_named(const std::string& placement, int ranks, int per_host) {
  std::vector<int> out;
  const int hosts = (ranks - 1) / per_host + 1;
  if (placement.starts_with("file:")) {
    for (const double host : numbers("--placement", placement)) out.push_back(static_cast<int>(host));
    if (out.size() != static_cast<std::size_t>(ranks) || *std::ranges::min_element(out) < 0 ||
        *std::ranges::max_element(out) >= ranks)
      throw BadUsage("--placement: expected " + std::to_string(ranks) + " numbers of hosts, from 0 to " +
                     std::to_string(ranks - 1) + ", one per rank, got " + std::to_string(out.size()));
    // Hosts are numbered in the order in which they appear.
    std::vector<int> number(static_cast<std::size_t>(ranks), -1);
    for (int next = 0; int& host : out) {
      int& known = number[static_cast<std::size_t>(host)];
      if (known < 0) known = next++;
      host = known;
    }
    return out;
  }
  if (placement != "cyclic")
    throw BadUsage("--placement: expected block, cyclic or file:PATH, got '" + placement + "'");
  for (int r = 0; r < ranks; ++r) out.push_back(r % hosts);
  return out;
}

int simulate(const SimulateOptions& o) {
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
  call.op = op;
  call.ranks = o.ranks;
  call.root = o.root;
  call.element_bytes = o.element;
  call.count = *bytes / o.element / (core::has_blocks(op) ? o.ranks : 1);
  if (core::is_irregular(op)) {
    call.element_bytes = std::max<core::Bytes>(1, *bytes / o.ranks);
    call.count = 1;
  }
  parameters.segments = o.segments;
  parameters.overlap = !o.lockstep;
  parameters.network = *network;
  if (o.per_host > 0) parameters.network.ranks_per_host = o.per_host;
  if (o.placement != "block") parameters.hosts = hosts_named(o.placement, o.ranks, parameters.network.ranks_per_host);

  // The bounds number the ranks by hosts, in blocks of one size.
  core::Call by_host = call;
  core::Pattern blocks = *arrivals;
  bool in_blocks = true;
  if (!parameters.hosts.empty()) {
    std::vector<core::Rank> order(static_cast<std::size_t>(o.ranks));
    std::iota(order.begin(), order.end(), 0);
    const auto host = [&](core::Rank r) { return parameters.hosts[static_cast<std::size_t>(r)]; };
    std::ranges::stable_sort(order, [&](auto a, auto b) { return host(a) < host(b); });
    std::vector<core::Nanoseconds> times;
    for (int i = 0; i < o.ranks; ++i) {
      const core::Rank r = order[static_cast<std::size_t>(i)];
      times.push_back(arrivals->arrival(r));
      if (r == call.root) by_host.root = i;
      in_blocks = in_blocks && host(r) == i / parameters.network.ranks_per_host;
    }
    blocks = core::Pattern(std::move(times));
  }
  core::LowerBound bound = core::lower_bound(by_host, parameters.network, blocks, parameters.sizes);
  bound.known = bound.known && in_blocks && (parameters.hosts.empty() || parameters.sizes.empty());
  const core::Jitter jitter{o.jitter, o.seed};
  const core::Nanoseconds least = core::least_after_last(by_host, parameters.network, blocks, parameters.sizes);
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  if (!o.json)
    std::printf("%-20s %14s %14s %14s %10s\n", o.op.c_str(), "run time", "mean elapsed", "after last", "messages");
  Progress progress("simulating " + o.op + ", algorithms", static_cast<std::int64_t>(algorithms.size()), o.patience);
  const auto show = [&](std::string_view name, const core::Simulation& run, std::chrono::nanoseconds planning) {
    if (o.json)
      results.push_back({{"algorithm", name},
                         {"run_time_ns", run.run_time},
                         {"mean_elapsed_ns", static_cast<std::int64_t>(run.mean_elapsed + 0.5)},
                         {"after_last_ns", run.after_last},
                         {"messages", run.messages},
                         {"planning_ns", planning.count()}});
    else
      std::printf("%-20s %14s %14s %14s %10lld\n", std::string(name).c_str(),
                  human_time(static_cast<double>(run.run_time)).c_str(), human_time(run.mean_elapsed).c_str(),
                  human_time(static_cast<double>(run.after_last)).c_str(), static_cast<long long>(run.messages));
  };
  for (const core::Algorithm* algorithm : algorithms) {
    progress.begin(std::string(algorithm->name));
    const auto before = std::chrono::steady_clock::now();
    const core::Instance instance(call, *forecast, parameters);
    for (auto schedule = algorithm->build(instance, 0); schedule.next();) {
    }
    const auto planning = std::chrono::steady_clock::now() - before;
    const auto result = core::simulate(*algorithm, instance, parameters.network, *arrivals, core::kLookahead, jitter);
    if (!result) throw std::runtime_error(std::string(algorithm->name) + ": " + result.error());
    progress.done();
    show(algorithm->name, *result, planning);
  }
  if (o.algorithm == "all" && core::native_stand_in(call)) {
    const auto native = core::simulate_native(call, *arrivals, parameters, jitter);
    if (!native) throw std::runtime_error("native: " + native.error());
    show("native", *native, {});
  }
  if (o.json) {
    nlohmann::ordered_json out;
    out["lower_bound_ns"] = bound.known ? nlohmann::ordered_json(bound.after_last) : nullptr;
    out["lower_bound_run_time_ns"] = bound.known ? nlohmann::ordered_json(bound.run_time) : nullptr;
    out["results"] = results;
    print_answer(out);
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
  auto o = std::make_shared<SimulateOptions>();
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
      ->check(CLI::Range(1, core::kMostSegments));
  command
      ->add_option(
          "--network", o->network,
          "Network: tryton2018, eth1g, fdr, hdr, or figures such as alpha=25us,beta=8ns/B. With "
          "ports=exclusive, a message that finds its receiver's port busy holds its sender's port. With duplex=half, "
          "large messages of two ranks to each other take turns.")
      ->capture_default_str();
  command
      ->add_option("--ranks-per-host", o->per_host,
                   "Ranks on each host, which share its ports. Default: that of the network.")
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option(
          "--placement", o->placement,
          "Hosts of the ranks: block (consecutive ranks), cyclic (in turn), or file:PATH with a host number per rank.")
      ->capture_default_str();
  command->add_flag("--lockstep", o->lockstep, "Begin each step only after the previous one, as in the publications.");
  Progress::add_option(*command, o->patience);
  command->add_flag("--json", o->json, "Print the answer as JSON.");
  command->footer(R"(Columns of the table, one row per algorithm:
  run time      first arrival to last exit
  mean elapsed  arrival to exit, mean over ranks
  after last    last arrival to last exit
  messages      messages of all ranks together
The row 'native' models MPICH 4's own choice: in two levels where ranks share hosts.
No algorithm is faster than the row 'lower bound'. The row 'sharper bound' also counts late ports and processors.

Examples:
  $ latecomer simulate --op allreduce --ranks 48 --bytes 4MiB --arrivals onelate:1:50ms
  $ latecomer simulate --op gatherv --ranks 64 --sizes skewed:64:100000 --network hdr,overhead=0.5us)");
  command->callback([o, &action] { action = [o] { return simulate(*o); }; });
}

}  // namespace latecomer::profiles::cli

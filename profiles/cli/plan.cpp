// SPDX-License-Identifier: BSD-3-Clause
// `latecomer plan`: the plans that algorithms compute from arrival times, for people and scripts.
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/algorithms/clairvoyant/planner.hpp"
#include "core/base/text.hpp"
#include "core/pap/pattern.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"

namespace latecomer::cli {
namespace {

struct ClairvoyantOptions {
  std::string round, arrivals = "balanced", generator = "rows";
  int ranks = 0, segments = 0;
  core::Rank root = 0;
  bool time = false, json = false;
};

int clairvoyant(const ClairvoyantOptions& o) {
  using namespace core::clairvoyant;
  const auto known = std::find(std::begin(kGeneratorNames), std::end(kGeneratorNames), o.generator);
  if (known == std::end(kGeneratorNames)) throw BadUsage("--impl: unknown generator '" + o.generator + "'" + core::suggestion(o.generator, kGeneratorNames));
  const auto generator = static_cast<Generator>(known - std::begin(kGeneratorNames));
  const auto arrivals = core::parse_arrivals(o.arrivals, o.ranks);
  if (!arrivals) throw BadUsage("--arrivals: " + arrivals.error());
  auto round = core::parse_duration(o.round + "s");
  if (!round) round = core::parse_duration(o.round);
  if (!round) throw BadUsage("--round: expected seconds, got '" + o.round + "'");
  Problem problem;
  problem.segments = o.segments, problem.root = o.root, problem.round_ns = *round;
  problem.arrivals = arrivals->arrivals();
  // What is timed is the generation: messages are counted, not kept.
  std::vector<Message> messages;
  std::int64_t count = 0;
  const auto before = std::chrono::steady_clock::now();
  const std::string wrong = o.time ? plan(problem, [&](const Message&) { ++count; }, generator) : plan(problem, [&](const Message& m) { messages.push_back(m); }, generator);
  const auto spent = std::chrono::nanoseconds(std::chrono::steady_clock::now() - before).count();
  if (!wrong.empty()) throw BadUsage("plan clairvoyant: " + wrong);
  sort(messages);
  if (o.json) {
    nlohmann::ordered_json out{{"messages", nlohmann::ordered_json::array()}, {"generation_ns", spent}};
    for (const Message& m : messages) out["messages"].push_back({m.round, m.src, m.dst, m.segment});
    std::printf("%s\n", out.dump().c_str());
  } else if (o.time) {
    std::printf("%s: %lld messages in %s\n", o.generator.c_str(), static_cast<long long>(count), human_time(static_cast<double>(spent)).c_str());
  } else {
    for (const Message& m : messages) std::printf("%lld %d %d %d\n", static_cast<long long>(m.round), m.src, m.dst, m.segment);
  }
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("plan", "Plans that algorithms compute from arrival times");
  command->require_subcommand(1);
  auto* sub = command->add_subcommand("clairvoyant", "Who sends which segment to whom in which round of a reduce: a line 'round src dst segment' each");
  auto o = std::make_shared<ClairvoyantOptions>();
  sub->add_option("--ranks", o->ranks, "number of processes")->required()->check(CLI::Range(1, 1 << 20));
  sub->add_option("--segments", o->segments, "segments of the vector")->required()->check(CLI::Range(0, 1 << 24));
  sub->add_option("--round", o->round, "time of a round, in seconds with up to nine decimals")->required();
  sub->add_option("--root", o->root, "root rank")->capture_default_str();
  sub->add_option("--arrivals", o->arrivals, "file:PATH (seconds, one per line), or as for simulate")->capture_default_str();
  sub->add_option("--impl", o->generator, "generator: linear, heap, segment or rows; all give the same plan")->capture_default_str();
  sub->add_flag("--time", o->time, "only the generation time");
  sub->add_flag("--json", o->json, "machine-readable answer");
  sub->callback([o, &action] { action = [o] { return clairvoyant(*o); }; });
}

}  // namespace latecomer::cli

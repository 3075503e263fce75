// SPDX-License-Identifier: BSD-3-Clause
// `latecomer plan`: the plans that algorithms compute from arrival times, for people and scripts.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "core/base/text.hpp"
#include "core/pap/pattern.hpp"
#include "core/trees/tree.hpp"
#include "profiles/base/json.hpp"
#include "profiles/base/progress.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"
#include "profiles/papers/generators/generators.hpp"

namespace latecomer::profiles::cli {
namespace {

struct ClairvoyantOptions {
  std::string round, arrivals = "balanced", generator = "rows";
  int ranks = 0, segments = 0;
  core::Rank root = 0;
  Progress::Patience patience;
  bool time = false, json = false;
};

int clairvoyant(const ClairvoyantOptions& o) {
  using namespace core::clairvoyant;
  const auto known = std::ranges::find(kGenerators, o.generator, &Generator::name);
  if (known == std::end(kGenerators)) {
    std::vector<std::string_view> names;
    for (const Generator& g : kGenerators) names.push_back(g.name);
    throw BadUsage("--impl: unknown generator '" + o.generator + "'" + core::suggestion(o.generator, names));
  }
  const auto arrivals = core::parse_arrivals(o.arrivals, o.ranks);
  if (!arrivals) throw BadUsage("--arrivals: " + arrivals.error());
  auto round = core::parse_duration(o.round + "s");
  if (!round) round = core::parse_duration(o.round);
  if (!round) throw BadUsage("--round: expected seconds, got '" + o.round + "'");
  Problem problem;
  problem.segments = o.segments;
  problem.root = o.root;
  problem.round_ns = *round;
  problem.arrivals = arrivals->arrivals();
  // The time is that of the generation: messages are counted, not kept.
  std::vector<Message> messages;
  std::int64_t count = 0;
  Progress progress("planning, rounds", 0, o.patience);
  const auto before = std::chrono::steady_clock::now();
  const std::string wrong = plan(
      problem,
      [&](std::span<const Message> round) {
        progress.done();
        count += static_cast<std::int64_t>(round.size());
        if (!o.time) messages.insert(messages.end(), round.begin(), round.end());
      },
      *known->generate);
  const auto spent = std::chrono::nanoseconds(std::chrono::steady_clock::now() - before).count();
  if (!wrong.empty()) throw BadUsage("plan clairvoyant: " + wrong);
  sort_messages(messages);
  if (o.json) {
    nlohmann::ordered_json out{{"messages", nlohmann::ordered_json::array()}, {"generation_ns", spent}};
    for (const Message& m : messages) out["messages"].push_back({m.round, m.src, m.dst, m.segment});
    print_answer(out, -1);
  } else if (o.time) {
    std::printf("%s: %lld messages in %s\n", o.generator.c_str(), static_cast<long long>(count),
                human_time(static_cast<double>(spent)).c_str());
  } else {
    for (const Message& m : messages)
      std::printf("%lld %d %d %d\n", static_cast<long long>(m.round), m.src, m.dst, m.segment);
  }
  return 0;
}

constexpr std::string_view kTreeOps[] = {"gather", "gatherv", "scatter", "scatterv", "bcast", "reduce"},
                           kTreeVariants[] = {"exact", "paper", "program"};

struct TreeArguments {
  std::string kind, sizes, root = "best", alpha = "0", beta = "0", gamma = "0", latency = "0", arrivals,
                           variant = "exact", op = "gather";
  Progress::Patience patience;
  bool plain = false, time = false, list_sizes = false, json = false;
};

/// Unknown options of the command line: the nearest one is named.
void refuse_extras(const CLI::App& command) {
  for (const std::string& word : command.remaining()) {
    if (!word.starts_with('-')) {
      if (core::parse_tree_kind(word)) throw BadUsage("plan tree: unexpected '" + word + "'; write --kind " + word);
      continue;  // the value of an option that does not exist
    }
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options()) names.push_back(option->get_name());
    const std::vector<std::string_view> valid(names.begin(), names.end());
    throw BadUsage("plan tree: unknown option '" + word + "'" +
                   core::suggestion(word.substr(0, word.find('=')), valid));
  }
  if (!command.remaining().empty()) throw BadUsage("plan tree: unexpected '" + command.remaining().front() + "'");
}

/// Throws if the value of an option is none of the valid ones.
void check_word(const std::string& option, const std::string& value, std::span<const std::string_view> valid) {
  if (std::ranges::find(valid, value) == valid.end())
    throw BadUsage(option + ": unknown value '" + value + "'" + core::suggestion(value, valid));
}

int tree(const TreeArguments& o, const CLI::App& command) {
  refuse_extras(command);
  if (o.kind.empty())
    throw BadUsage("plan tree: --kind is missing: linear, binary, binomial, adaptive, optimal, two_block or sorted");
  const auto kind = core::parse_tree_kind(o.kind);
  if (!kind) throw BadUsage("--kind: " + kind.error());
  if (o.sizes.empty())
    throw BadUsage(
        "plan tree: --sizes is missing: file:PATH with one size per line, or a distribution such as spikes:2000");
  check_word("--op", o.op, kTreeOps);
  check_word("--variant", o.variant, kTreeVariants);
  if (o.list_sizes && !o.json) throw BadUsage("--list-sizes: goes with --json");
  if (o.plain && *kind != core::TreeKind::optimal)
    throw BadUsage("--plain: goes with --kind optimal, which has two programs; " + o.kind + " has one");
  core::TreeProblem problem;
  problem.sizes = sizes_named(o.sizes);
  problem.alpha = numbers("--alpha", o.alpha);
  problem.beta = numbers("--beta", o.beta);
  problem.gamma = numbers("--gamma", o.gamma);
  const auto latency = numbers("--latency", o.latency);
  if (latency.size() != 1) throw BadUsage("--latency: expected one number, got " + std::to_string(latency.size()));
  problem.latency = latency.front();
  if (!o.arrivals.empty()) {
    if (!o.arrivals.starts_with("file:"))
      throw BadUsage("--arrivals: expected file:PATH with one time per rank, got '" + o.arrivals + "'");
    problem.arrivals = numbers("--arrivals", o.arrivals);
  }
  problem.whole = o.op == "bcast" || o.op == "reduce";
  core::TreeOptions options;
  options.form = o.variant == "paper"     ? core::TreeForm::paper
                 : o.variant == "program" ? core::TreeForm::program
                                          : core::TreeForm::exact;
  options.plain = o.plain;
  if (o.root != "best") {
    const auto root = core::parse_integer(o.root);
    if (!root || *root < 0 || *root > 1 << 20)
      throw BadUsage("--root: expected a rank or 'best', got '" + o.root + "'");
    options.root = static_cast<core::Rank>(*root);
  }
  Progress progress("planning a tree for " + std::to_string(problem.sizes.size()) + " ranks, trees", 1, o.patience);
  const auto before = std::chrono::steady_clock::now();
  const auto found = core::plan_tree(*kind, problem, options);
  progress.done();
  const auto spent = std::chrono::nanoseconds(std::chrono::steady_clock::now() - before).count();
  if (!found) throw BadUsage("plan tree: " + found.error());
  const auto senders = found->senders();
  if (o.json) {
    const auto whole = [](double x) { return x == static_cast<double>(static_cast<std::int64_t>(x)); };
    nlohmann::ordered_json out;
    if (whole(found->cost)) out["cost"] = static_cast<std::int64_t>(found->cost);
    else out["cost"] = found->cost;
    out["root"] = found->root;
    out["parent"] = found->parent;
    out["children"] = found->children;
    out["generation_ns"] = spent;
    if (o.list_sizes) out["sizes"] = problem.sizes;
    print_answer(out, -1);
    return 0;
  }
  std::printf("time %.15g\nroot %d\n", found->cost, found->root);
  if (o.time) {
    std::printf("%s: planned in %s\n", o.kind.c_str(), human_time(static_cast<double>(spent)).c_str());
    return 0;
  }
  for (const core::Rank r : senders) std::printf("%d %d\n", r, found->parent[static_cast<std::size_t>(r)]);
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("plan", "Print the plans that algorithms compute from arrival times");
  command->require_subcommand(1);
  auto* sub = command->add_subcommand(
      "clairvoyant", "Print the messages of a Clairvoyant reduce, one line 'round src dst segment' each");
  auto o = std::make_shared<ClairvoyantOptions>();
  sub->add_option("--ranks", o->ranks, "Number of ranks.")->required()->check(CLI::Range(1, 1 << 20));
  sub->add_option("--segments", o->segments, "Segments of the vector.")->required()->check(CLI::Range(0, 1 << 24));
  sub->add_option("--round", o->round, "Time of a round in seconds, with up to nine decimals.")->required();
  sub->add_option("--root", o->root, "Rank of the root.")->capture_default_str();
  sub->add_option("--arrivals", o->arrivals,
                  "Arrival times: file:PATH with a time in seconds per line, or as for latecomer simulate.")
      ->capture_default_str();
  sub->add_option("--impl", o->generator, "generator: plain, heaps, segment_tree or rows; all give the same plan")
      ->capture_default_str();
  sub->add_flag("--time", o->time, "Print only the planning time.");
  Progress::add_option(*sub, o->patience);
  sub->add_flag("--json", o->json, "Print the answer as JSON.");
  sub->footer(
      R"(Columns: round, sender, receiver, segment. Lines are in the order of rounds, then of receivers.

Example:
  $ latecomer plan clairvoyant --ranks 4 --segments 4 --round 0.001 --arrivals onelate:3:1.1ms)");
  sub->callback([o, &action] { action = [o] { return clairvoyant(*o); }; });

  auto* trees = command->add_subcommand("tree", "Print the tree of an irregular gather or scatter");
  trees->allow_extras();  // refused with the nearest option (refuse_extras)
  auto t = std::make_shared<TreeArguments>();
  trees->add_option("--kind", t->kind,
                    "Kind of tree: linear, binary, binomial, adaptive, optimal, two_block or sorted. Required.");
  trees->add_option(
      "--sizes", t->sizes,
      "Size of the block of each rank: file:PATH with one size per line, or a distribution of Traeff 2019 as "
      "NAME:P[:B[:RHO]], such as spikes:2000. Required.");
  trees->add_option("--root", t->root, "Rank of the root, or best.")->capture_default_str();
  trees
      ->add_option("--alpha", t->alpha,
                   "Start-up time of a message, or file:PATH with a matrix that has a row per sender.")
      ->capture_default_str();
  trees->add_option("--beta", t->beta, "Time per unit of size, or file:PATH with a matrix.")->capture_default_str();
  trees->add_option("--gamma", t->gamma, "Copy time per unit of size, or file:PATH with one time per line.")
      ->capture_default_str();
  trees->add_option("--latency", t->latency, "Time of a message in flight, which occupies no rank.")
      ->capture_default_str();
  trees->add_option("--arrivals", t->arrivals,
                    "Arrival times: file:PATH with one time per line, in the unit of --alpha. The printed time is then "
                    "that of a gather or reduce.");
  trees
      ->add_option(
          "--op", t->op,
          "Operation: gather, scatter, bcast or reduce. In bcast and reduce every message has the largest size.")
      ->capture_default_str();
  trees
      ->add_option("--variant", t->variant,
                   "With --kind optimal: exact is the optimum, paper the equations of Traeff 2019, in which a root at "
                   "the right end copies last, and program the program of that paper.")
      ->capture_default_str();
  trees->add_flag("--plain", t->plain, "With --kind optimal: use the cubic program, which checks the quadratic one.");
  trees->add_flag("--time", t->time, "Print only the planning time.");
  trees->add_flag("--list-sizes", t->list_sizes, "With --json: also print the sizes.");
  Progress::add_option(*trees, t->patience);
  trees->add_flag("--json", t->json, "Print the answer as JSON.");
  trees->footer(
      R"(The answer has the completion time, the root, and one line 'child parent' per message. A gather sends the messages in
this order, a scatter in the reverse order.

Example:
  $ latecomer plan tree --kind optimal --sizes spikes:16 --root 0 --alpha 100 --beta 1)");
  trees->callback([t, trees, &action] { action = [t, trees] { return tree(*t, *trees); }; });
}

}  // namespace latecomer::profiles::cli

// SPDX-License-Identifier: BSD-3-Clause
// `latecomer algorithms`: lists the catalogue.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "profiles/base/json.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"

namespace latecomer::profiles::cli {
namespace {

int list(const std::string& op, bool json) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const core::Algorithm& a : core::catalogue()) {
    if (!op.empty() && a.op != collective_named(op)) continue;
    nlohmann::ordered_json lanes = {"foreground"};
    if (a.background) lanes.push_back("background");
    out.push_back({{"op", core::name_of(a.op)},
                   {"name", a.name},
                   {"source", a.source},
                   {"cost", a.cost},
                   {"restrictions", a.restrictions()},
                   {"lanes", lanes},
                   {"keeps_rank_order", a.keeps_rank_order()},
                   {"pattern_independent", a.pattern_independent()}});
  }
  if (json) {
    print_answer(out);
    return 0;
  }
  if (out.empty()) std::printf("this version has no algorithms for %s: it always runs native\n", op.c_str());
  for (const auto& a : out) {
    std::printf("%s/%s\n  source        %s\n  cost          %s\n", a["op"].get<std::string>().c_str(),
                a["name"].get<std::string>().c_str(), a["source"].get<std::string>().c_str(),
                a["cost"].get<std::string>().c_str());
    if (const auto restrictions = a["restrictions"].get<std::string>(); !restrictions.empty())
      std::printf("  restrictions  %s\n", restrictions.c_str());
    std::printf("  operands      %s, association %s the pattern\n",
                a["keeps_rank_order"].get<bool>() ? "in rank order" : "reordered",
                a["pattern_independent"].get<bool>() ? "independent of" : "depends on");
  }
  return 0;
}

}  // namespace

void add_algorithms(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("algorithms", "List the algorithms with their cost and restrictions");
  auto op = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command->add_option("--op", *op, "List only the algorithms of this collective.");
  command->add_flag("--json", *json, "Print the answer as JSON.");
  command->footer(R"(Rows of each algorithm:
  source        publication of the algorithm
  cost          modelled time; P ranks, N bytes, S segments, alpha per message, beta per byte, gamma per reduced byte
  restrictions  calls that it cannot serve; no such row: it serves all calls
  operands      whether operands stay in rank order, and whether their order depends on the arrival pattern
  lanes         background: a thread moves messages before the process arrives

Examples:
  $ latecomer algorithms --op reduce
  $ latecomer algorithms --json)");
  command->callback([op, json, &action] { action = [op, json] { return list(*op, *json); }; });
}

}  // namespace latecomer::profiles::cli

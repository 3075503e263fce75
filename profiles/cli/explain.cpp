// SPDX-License-Identifier: BSD-3-Clause
// `latecomer explain [ID]`: what a kind of finding means.
#include <cstdio>
#include <memory>

#include "core/base/text.hpp"
#include "profiles/analysis/findings.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/render/text_table.hpp"

namespace latecomer::profiles::cli {
namespace {

int explain(const std::string& id) {
  std::vector<std::string_view> known;
  bool found = false;
  for (const analysis::KindText& kind : analysis::kFindingKinds) {
    known.push_back(kind.id);
    if (!id.empty() && kind.id != id) continue;
    if (found) std::printf("\n");
    found = true;
    std::printf("%s\n", std::string(kind.id).c_str());
    print_paragraph(std::string(kind.meaning));
  }
  if (!found) throw BadUsage("explain: no finding is called '" + id + "'" + core::suggestion(id, known));
  return 0;
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("explain", "Say what the kinds of findings mean, and where their figures come from");
  auto id = std::make_shared<std::string>();
  command->add_option("ID", *id, "Id of a finding, as in report --json. Default: all.");
  command->footer(R"(Examples:
  $ latecomer explain imbalance
  $ latecomer report --json job.json | python3 -c 'import json, sys; print(json.load(sys.stdin)["findings"][0]["id"])')");
  command->callback([id, &action] { action = [id] { return explain(*id); }; });
}

}  // namespace latecomer::profiles::cli

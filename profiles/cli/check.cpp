// SPDX-License-Identifier: BSD-3-Clause
// `latecomer check`: reports the mistakes of a policy file, the rules that can never match, and the rules that can
// match only after the first plan.
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/policy/policy.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/json.hpp"

namespace latecomer::cli {
namespace {

int check(const std::string& file, bool json) {
  std::ifstream in(file);
  if (!in) throw BadUsage("cannot read '" + file + "'");
  std::ostringstream text;
  text << in.rdbuf();
  const core::PolicyReport report = core::parse_policy(text.str());
  bool dead = false;
  for (const auto& n : report.notes) dead = dead || n.message.starts_with("can never match");
  if (json) {
    nlohmann::ordered_json out{{"ok", report.ok() && !dead}, {"problems", nlohmann::ordered_json::array()}};
    for (const auto* list : {&report.problems, &report.notes})
      for (const auto& p : *list) {
        if (list == &report.notes && !p.message.starts_with("can never match")) continue;
        out["problems"].push_back({{"line", p.line}, {"path", p.path}, {"message", p.message}});
      }
    out["warnings"] = nlohmann::ordered_json::array();
    for (const auto& p : report.warnings)
      out["warnings"].push_back({{"line", p.line}, {"path", p.path}, {"message", p.message}});
    // A message may quote bytes of the file that are not UTF-8.
    std::printf("%s\n", profiles::json_text(out, 2).c_str());
  } else {
    for (const auto& p : report.problems)
      std::printf("%s:%d: %s%s%s\n", file.c_str(), p.line, p.path.c_str(), p.path.empty() ? "" : ": ",
                  p.message.c_str());
    for (const auto& p : report.notes)
      std::printf("%s:%d: note: %s: %s\n", file.c_str(), p.line, p.path.c_str(), p.message.c_str());
    for (const auto& p : report.warnings)
      std::printf("%s:%d: warning: %s: %s\n", file.c_str(), p.line, p.path.c_str(), p.message.c_str());
    if (report.ok()) std::printf("%s: good, %zu rules\n", file.c_str(), report.policy.rules.size());
  }
  return report.ok() && !dead ? 0 : 1;
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("check", "Check a policy file and show every mistake with its line and remedy");
  struct Options {
    std::string file;
    bool json = false, schema = false;
  };
  auto o = std::make_shared<Options>();
  command->add_option("FILE", o->file, "Policy file to check.");
  command->add_flag("--json", o->json, "Print the answer as JSON.");
  command->add_flag("--schema", o->schema, "Print the JSON Schema of policy files.");
  command->footer(R"(The answer has one line per mistake: file, line, key, the mistake, and the nearest valid choice.

Examples:
  $ latecomer check policy.json
  $ latecomer check --schema > policy.schema.json)");
  command->callback([o, &action] {
    action = [o] {
      if (o->schema) return std::fputs(core::policy_schema().c_str(), stdout) < 0 ? 2 : 0;
      if (o->file.empty()) throw BadUsage("check: give a policy FILE, or --schema");
      return check(o->file, o->json);
    };
  });
}

}  // namespace latecomer::cli

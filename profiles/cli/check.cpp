// SPDX-License-Identifier: BSD-3-Clause
// `latecomer check`: reports the mistakes of a policy, the rules without effect, a history that cannot be read, and the
// rules that serve only a part of their calls.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/file.hpp"
#include "core/policy/json_lines.hpp"
#include "core/policy/policy.hpp"
#include "profiles/base/json.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"
#include "profiles/cli/policy_text.hpp"
#include "profiles/format/reader.hpp"
#include "profiles/format/shape.hpp"

namespace latecomer::profiles::cli {
namespace {

/// Whether a note is about a rule that no call of any job can follow.
bool is_without_effect(const core::PolicyProblem& note) { return note.message.starts_with("can never "); }

/// Why a file of what an earlier run learned cannot be used, or "".
std::string history_problem(const std::string& path) {
  constexpr std::size_t kHead = 64;
  const auto text = core::read_file(path);
  if (text && std::string_view(*text).substr(0, kHead).find("\"latecomer-learned\"") != std::string_view::npos)
    return "";
  try {
    load_profile(path, {});
    return "";
  } catch (const BadUsage& e) {
    return std::string(e.what()) + (path.starts_with("/") ? "" : "; the job seeks it from its working folder");
  }
}

int check_file(const std::string& named, bool json) {
  const std::string given = named.empty() ? configuration_path() : named;
  if (given.empty())
    throw BadUsage(std::string("check: give a policy FILE, or --schema; without them it checks ") +
                   core::kConfiguration + ", which does not exist");
  const PolicyText text = policy_text("check", given);
  const core::PolicyReport report = core::parse_policy(text.text);
  std::vector<core::PolicyProblem> findings = report.problems, notes;
  for (const auto& n : report.notes) (is_without_effect(n) ? findings : notes).push_back(n);
  if (const std::string& learned = report.policy.learn; report.ok() && !learned.empty()) {
    const auto keys = core::parse_json(text.text);
    const bool older = !keys->find("learn");  // a file of the older name existed before the job
    const char* const key = older ? "history" : "learn";
    if (older || std::filesystem::exists(learned))
      if (const std::string why = history_problem(learned); !why.empty())
        findings.push_back({keys->find(key)->line, key, why});
  }
  if (json) {
    const auto list = [](const std::vector<core::PolicyProblem>& from) {
      Json out = Json::array();
      for (const auto& p : from) out.push_back({{"line", p.line}, {"path", p.path}, {"message", p.message}});
      return out;
    };
    const Json out{{"ok", findings.empty()}, {"problems", list(findings)}, {"warnings", list(report.warnings)}};
    // A message may quote bytes of the file that are not UTF-8.
    print_answer(out);
  } else {
    const auto print = [&](const std::vector<core::PolicyProblem>& list, const char* kind) {
      for (const auto& p : list)
        std::printf("%s:%d: %s%s%s%s\n", text.name.c_str(), p.line, kind, p.path.c_str(), p.path.empty() ? "" : ": ",
                    p.message.c_str());
    };
    print(findings, "");
    print(notes, "note: ");
    print(report.warnings, "warning: ");
    if (findings.empty())
      std::printf("%s: %s, %zu rules\n", text.name.c_str(), report.warnings.empty() ? "good" : "no mistake",
                  report.policy.rules.size());
  }
  return findings.empty() ? 0 : 1;
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("check", "Check a policy and show its mistakes with line and remedy");
  struct Options {
    std::string file;
    bool json = false, schema = false, profile_schema = false;
  };
  auto o = std::make_shared<Options>();
  command->add_option(
      "FILE", o->file,
      "Policy file to check, or the policy itself if the word begins with {. Default: the configuration of the site.");
  command->add_flag("--json", o->json, "Print the answer as JSON.");
  command->add_flag("--schema", o->schema, "Print the JSON Schema of policy files.");
  command->add_flag("--profile-schema", o->profile_schema, "Print the JSON Schema of profiles.");
  command->footer(
      R"(The answer has one line per mistake: file, line, key, the mistake, and the nearest valid choice. Of a text that is not
JSON, it names the first mistake. A finding is also a rule that no call can follow, and a file of `learn` that cannot be read.
Warnings name rules that come into force late or serve only a part of their calls; the exit status is then 0.

Examples:
  $ latecomer check policy.json
  $ latecomer check '{"version": 1, "network": "measure"}'
  $ latecomer check --schema > policy.schema.json)");
  command->callback([o, &action] {
    action = [o] {
      if (o->schema || o->profile_schema)
        return std::fputs((o->schema ? core::policy_schema() : json_text(profile_schema(), 2) + "\n").c_str(), stdout) <
                       0
                   ? 2
                   : 0;
      return check_file(o->file, o->json);
    };
  });
}

}  // namespace latecomer::profiles::cli

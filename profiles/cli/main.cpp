// SPDX-License-Identifier: BSD-3-Clause
// `latecomer`: parses the command line and runs one sub-command.
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "core/base/text.hpp"
#include "profiles/base/text.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/version.hpp"
#include "profiles/watch/live_ranks.hpp"

namespace {

/// The most deeply nested sub-command that the words name.
CLI::App* named_by(CLI::App& app, const std::vector<std::string>& words) {
  CLI::App* at = &app;
  for (const std::string& word : words) {
    const auto below = at->get_subcommands([&](CLI::App* sub) { return sub->get_name() == word; });
    if (below.empty()) break;
    at = below.front();
  }
  return at;
}

/// ": unknown option '--x', did you mean '--y'?" for the first unknown option, or "".
std::string option_meant(CLI::App& command, const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  const std::vector<std::string_view> valid(names.begin(), names.end());
  for (const std::string& word : words) {
    if (word == "--") break;
    const std::string name = word.substr(0, word.find('='));
    if (!name.starts_with("-") || name == "-" || command.get_option_no_throw(name)) continue;
    return ": unknown option '" + name + "'" + latecomer::core::suggestion(name, valid);
  }
  return "";
}

/// For a profile that cannot be read: the files that its job has left, and the command that shows them. "": no files.
std::string job_of(const std::string& profile) {
  using namespace latecomer::profiles;
  using namespace latecomer::profiles::cli;
  if (access((profile + ".parts").c_str(), F_OK) != 0) return "";
  const std::string self = shell_word(profile);
  if (std::ranges::any_of(live_ranks(live_job(profile)), [](const LiveRank& r) { return r.state != 'X'; }))
    return "; its job is still running: latecomer top " + self + " shows it now";
  return "; its job has left snapshots: if it has ended, latecomer recover " + self +
         " makes the profile; if it runs on another host, latecomer top " + self + " shows it now";
}

}  // namespace

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): without memory it may end as it likes
  using namespace latecomer::profiles;
  CLI::App app{"latecomer: show which ranks the collectives of an MPI program wait for, and shorten the wait",
               "latecomer"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "latecomer " + std::string(cli::kVersionText));
  cli::Action action;
#define ROW(name) cli::add_##name(app, action);
  LATECOMER_COMMANDS(ROW)
#undef ROW
  constexpr std::string_view kNames[] = {
#define ROW(name) #name,
      LATECOMER_COMMANDS(ROW)
#undef ROW
  };
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words.front() == "help") {  // `latecomer help plan tree`
    words.erase(words.begin());
    words.push_back("--help");
  }
  if (words.empty()) {
    std::cerr << app.help();
    return 2;
  }
  if (words.front()[0] != '-' && std::find(std::begin(kNames), std::end(kNames), words.front()) == std::end(kNames)) {
    std::cerr << "latecomer: unknown command '" << words.front() << "'"
              << latecomer::core::suggestion(words.front(), kNames) << "\n";
    return 2;
  }
  words = cli::separate_command(app, std::move(words));
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    try {
      return action();
    } catch (const CannotRead& e) {
      throw BadUsage(e.what() + job_of(e.file));
    }
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    CLI::App* command = named_by(app, words);
    std::string path = command == &app ? "" : " " + command->get_name();
    if (command != &app && command->get_parent() != &app) path = " " + command->get_parent()->get_name() + path;
    const std::string meant = option_meant(*command, words);
    std::cerr << "latecomer" << (meant.empty() ? ": " + std::string(e.what()) : meant) << " (see latecomer" << path
              << " --help)\n";
    return 2;
  } catch (const std::exception& e) {
    std::cerr << "latecomer: " << e.what() << "\n";
    return 2;
  }
}

// SPDX-License-Identifier: BSD-3-Clause
// `latecomer`: parses the command line and runs one sub-command.
#include <cstdio>
#include <iostream>

#include "core/base/text.hpp"
#include "profiles/cli/commands.hpp"

int main(int argc, char** argv) {
  using namespace latecomer;
  CLI::App app{"latecomer: which collectives of an MPI program wait for whom, and what to do about it", "latecomer"};
  app.require_subcommand(1);
  app.set_version_flag("--version", LATECOMER_VERSION);
  cli::Action action;
#define ROW(name) cli::add_##name(app, action);
  LATECOMER_COMMANDS(ROW)
#undef ROW
  constexpr std::string_view kNames[] = {
#define ROW(name) #name,
      LATECOMER_COMMANDS(ROW)
#undef ROW
  };
  if (argc > 1 && argv[1][0] != '-' && std::find(std::begin(kNames), std::end(kNames), argv[1]) == std::end(kNames)) {
    std::cerr << "latecomer: unknown command '" << argv[1] << "'" << core::suggestion(argv[1], kNames) << "\n";
    return 2;
  }
  try {
    app.parse(argc, argv);
    return action();
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    std::cerr << "latecomer: " << e.what() << " (see latecomer " << (argc > 1 ? argv[1] : "") << " --help)\n";
    return 2;
  } catch (const cli::BadUsage& e) {
    std::cerr << "latecomer: " << e.what() << "\n";
    return 2;
  } catch (const std::exception& e) {
    std::cerr << "latecomer: " << e.what() << "\n";
    return 2;
  }
}

// SPDX-License-Identifier: BSD-3-Clause
// The sub-commands of `latecomer`. Each file registers one and returns the process's exit status from it:
// 0 good, 1 a finding, 2 bad usage. Answers go to stdout, errors to stderr.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace latecomer::cli {

/// Wrong usage that the option parser cannot see; ends the command with status 2.
struct BadUsage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What the chosen sub-command does; returns the exit status.
using Action = std::function<int()>;

// One row per sub-command: function, in the order of `latecomer --help`.
// cmake/install.cmake reads this line: it stays one.
// clang-format off
#define LATECOMER_COMMANDS(ROW) ROW(run) ROW(report) ROW(advise) ROW(diff) ROW(check) ROW(calibrate) ROW(algorithms) ROW(simulate) ROW(verify) ROW(plan) ROW(papers) ROW(recover) ROW(completion)
// clang-format on

#define ROW(name) void add_##name(CLI::App& app, Action& action);
LATECOMER_COMMANDS(ROW)
#undef ROW

/// The command line with the `--` that a user left out before the launcher's arguments of `run`.
std::vector<std::string> separate_command(CLI::App& app, std::vector<std::string> words);

}  // namespace latecomer::cli

// SPDX-License-Identifier: BSD-3-Clause
// The sub-commands of `latecomer`. Each source file registers one and returns the exit status: 0 good, 1 a finding, 2
// bad usage. Answers go to stdout, errors to stderr.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "profiles/base/errors.hpp"

namespace latecomer::profiles::cli {

/// Runs the chosen sub-command and returns the exit status.
using Action = std::function<int()>;

// One row per sub-command, in the order of `latecomer --help`. cmake/install.cmake reads this line: it stays one.
// clang-format off
#define LATECOMER_COMMANDS(ROW) ROW(run) ROW(info) ROW(report) ROW(explain) ROW(advise) ROW(whatif) ROW(export) ROW(diff) ROW(check) ROW(calibrate) ROW(algorithms) ROW(simulate) ROW(verify) ROW(plan) ROW(papers) ROW(recover) ROW(who) ROW(relay) ROW(top) ROW(completion)
// clang-format on

#define ROW(name) void add_##name(CLI::App& app, Action& action);
LATECOMER_COMMANDS(ROW)
#undef ROW

/// The folder of a job's snapshots, from PROFILE or PROFILE.parts. Throws BadUsage if it does not exist.
std::string snapshots_of(const std::string& place);

/// Inserts a missing `--` before the launcher's arguments of `run` and returns the command line.
std::vector<std::string> separate_command(CLI::App& app, std::vector<std::string> words);

/// The option --mpi of `run` and `calibrate`.
void add_mpi_option(CLI::App& command, std::string& mpi);

}  // namespace latecomer::profiles::cli

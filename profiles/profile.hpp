// SPDX-License-Identifier: BSD-3-Clause
// The profile file: merging what the processes contributed and writing INTERFACE's JSON.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "profiles/record.hpp"

namespace latecomer::profiles {

struct JobInfo {
  std::string program, command_line, start, mpi_library, mode;
  int ranks = 0;
  double wall_time_s = 0;
  bool network_known = false;
  core::Network network;
};

/// JSON text of the profile of `parts` (any subset of the job's processes, in any order). Logs that no
/// leader has seen are matched here first.
std::string write_profile(const JobInfo& job, std::vector<Contribution> parts);

/// Writes to a temporary name beside `path`, then renames.
core::Result<bool> write_file(const std::string& path, const std::string& text);

}  // namespace latecomer::profiles

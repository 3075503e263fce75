// SPDX-License-Identifier: BSD-3-Clause
// The profile file: merging what the processes contributed and writing INTERFACE's JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "profiles/files.hpp"
#include "profiles/record.hpp"

namespace latecomer::profiles {

/// Writes the JSON of the profile of `parts` (any subset of a job's processes, in any order; the head is the
/// lowest rank's). Logs that no leader has seen are matched here first. At most kMostSitesWritten sites, the
/// smallest of the rest as one, and ranks in at most kMostRows rows, both said in `warnings`.
/// `never_ran`: filled with a line for every algorithm that a rule names and that served no call.
void write_profile(std::vector<Contribution> parts, const Sink& sink, std::vector<std::string>* never_ran = nullptr);
std::string write_profile(std::vector<Contribution> parts);

/// As the policy's `network`.
nlohmann::ordered_json network_json(const core::Network& network);

}  // namespace latecomer::profiles

// SPDX-License-Identifier: BSD-3-Clause
// The profile file: merges the contributions of the processes and writes JSON as docs/schema/profile.schema.json
// defines it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "profiles/files/shared_folder.hpp"
#include "profiles/record/merged.hpp"
#include "profiles/record/record.hpp"

namespace latecomer::profiles {

using NameFrames = std::function<void(const std::vector<Frame*>&)>;

/// Writes the profile of `all` as JSON: any subset of a job's processes. The lowest rank provides the head. Matches the
/// logs that no leader matched. Writes at most kMostSitesWritten sites (the smallest others folded into one) and at
/// most kMostRows rows of ranks per site; `warnings` says so. Fills `never_ran` with one line per algorithm that a rule
/// names and that served no call. `name` may set the functions of the frames that the profile shows. `last_state`: the
/// value of this key as JSON, or "" for a profile without it. Uses up the contents of `all`.
void write_profile(Merged& all, const Sink& sink, std::vector<std::string>* never_ran = nullptr,
                   const NameFrames& name = nullptr, const std::string& last_state = "");
/// The same for `parts`, in any order, which this function only sorts.
void write_profile(std::vector<Contribution>& parts, const Sink& sink, std::vector<std::string>* never_ran = nullptr,
                   const NameFrames& name = nullptr, const std::string& last_state = "");
std::string write_profile(std::vector<Contribution> parts, const std::string& last_state = "");

/// Adds figures that were measured at the end of the job to a written profile without figures. The file at `path` is
/// whole at any time.
core::Result<bool> add_network(const std::string& path, const core::Network& network);

}  // namespace latecomer::profiles

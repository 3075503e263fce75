// SPDX-License-Identifier: BSD-3-Clause
// Faults in the set-up of a run: ranks, cores, binding, waiting and hosts. docs/explanation/causes.md
// describes the estimates.
#pragma once

#include <string>
#include <vector>

#include "profiles/format/reader.hpp"

namespace latecomer::profiles {

/// One sentence for each finding, the gravest first. A statement that the data do not support is left out.
std::vector<std::string> set_up(const Profile& profile);
/// The finding among them on what ran beside the job, and on the quota of its control group; or "".
std::string host_load(const Profile& profile);

}  // namespace latecomer::profiles

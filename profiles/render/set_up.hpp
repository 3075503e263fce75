// SPDX-License-Identifier: BSD-3-Clause
// Faults in the set-up of a run: ranks, cores, binding, waiting and hosts. docs/explanation/causes.md
// describes the estimates.
#pragma once

#include <vector>

#include "profiles/analysis/findings.hpp"

namespace latecomer::profiles {

/// The gravest first; each has its sentences. A statement that the data do not support is left out.
std::vector<analysis::Finding> set_up(const Profile& profile);

}  // namespace latecomer::profiles

// SPDX-License-Identifier: BSD-3-Clause
// Folded stacks, as flamegraph.pl, speedscope and inferno read them.
#pragma once

#include "profiles/analysis/profile.hpp"
#include "profiles/files/shared_folder.hpp"

namespace latecomer::profiles {

/// Writes a line `rank N;before CALL;FUNCTION SAMPLES` for each rank, call and function.
void write_folded(const Profile& profile, const Sink& sink);

}  // namespace latecomer::profiles

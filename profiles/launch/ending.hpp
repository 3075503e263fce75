// SPDX-License-Identifier: BSD-3-Clause
// The message of `latecomer run` at the end of the job: the verdict in brief, the profile, and the next command.
#pragma once

#include <string>

#include "profiles/launch/launch.hpp"
#include "profiles/launch/output.hpp"

namespace latecomer::profiles {

/// Puts names into the profile. Then prints to stderr, unless `quiet`. `program`: the job's program, for a job that
/// left nothing. The profile may have any content: the worst that follows is a line that says so.
void say_end(const Output& output, const Ended& ended, const std::string& program, bool quiet);

}  // namespace latecomer::profiles

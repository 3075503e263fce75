// SPDX-License-Identifier: BSD-3-Clause
// What `latecomer run` says when the job has ended: the verdict in brief, the profile, and the command that comes next.
#pragma once

#include <string>

#include "profiles/cli/launch.hpp"
#include "profiles/cli/output.hpp"

namespace latecomer::profiles::cli {

/// Puts names into the profile. Then prints to stderr, unless `quiet`. `program`: the job's program, for a job that
/// left nothing. The profile may have any content: the worst that follows is a line that says so.
void say_end(const Output& output, const Ended& ended, const std::string& program, bool quiet);

}  // namespace latecomer::profiles::cli

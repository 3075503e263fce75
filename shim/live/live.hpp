// SPDX-License-Identifier: BSD-3-Clause
// Keeps the present state of this process in shared memory, for `latecomer who` (profiles/live.hpp).
#pragma once

#include <string>

#include "profiles/live.hpp"
#include "profiles/record.hpp"

namespace latecomer::shim {

/// Where the state goes: into shared memory, or into a line that nobody reads.
extern profiles::LiveLine* live;

/// Makes the file of this process and removes those of processes that are gone. Without shared memory nothing happens.
void live_start(int rank, int ranks, const std::string& host, const std::string& output);
/// Adds the frames of new sites.
void live_frames(const profiles::Frame& frame);
/// Removes the file.
void live_stop();

}  // namespace latecomer::shim

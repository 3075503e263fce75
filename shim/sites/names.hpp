// SPDX-License-Identifier: BSD-3-Clause
// Whether a call site matches a policy's `site` glob: its id, module+offset, function, or file:line. Only leaders ask,
// at ends of epochs. Each answer is cached. Also the names that the profile gets at the end of the job.
#pragma once

#include <string>
#include <vector>

#include "profiles/record/record.hpp"

namespace latecomer::shim {

bool site_is(const profiles::SiteKey& key, const std::string& glob);

/// Sets the functions of frames that lie in dynamic symbols of this process's modules. Reads no debug information.
/// Stops after a tenth of a second.
void name_frames(const std::vector<profiles::Frame*>& frames);

}  // namespace latecomer::shim

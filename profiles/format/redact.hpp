// SPDX-License-Identifier: BSD-3-Clause
// Makes a profile fit to be given to others: without command lines, names of hosts and directories.
#pragma once

#include <nlohmann/json.hpp>

namespace latecomer::profiles {

/// Changes every text of the profile. Hosts become host-1, host-2 and so on, in the order of their names. A path
/// becomes its last part. The command line becomes the last part of the program's path. Call it after names are
/// resolved, because modules can no longer be opened afterwards.
void redact(nlohmann::ordered_json& profile);

}  // namespace latecomer::profiles

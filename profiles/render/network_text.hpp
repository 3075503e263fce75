// SPDX-License-Identifier: BSD-3-Clause
// Says where the figures of the network in a profile come from.
#pragma once

#include <string>

#include "profiles/format/reader.hpp"

namespace latecomer::profiles {

/// A sentence with the main figures and their source. "": the profile has no figures.
std::string network_sentence(const Profile& profile);

}  // namespace latecomer::profiles

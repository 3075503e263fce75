// SPDX-License-Identifier: BSD-3-Clause
// The algorithms that `latecomer advise` would choose, for other commands.
#pragma once

#include <map>
#include <string>

#include "profiles/format/reader.hpp"

namespace latecomer::profiles::cli {

struct Advised {
  std::string algorithm;
  double factor = 1;  ///< modelled time of a call after the last arrival, divided by native's modelled time
};

/// By site id, for the sites where an algorithm would gain. Empty without figures of the network in the profile.
/// `profile`: from load_profile() with Wanted::offsets.
std::map<std::string, Advised> advised_algorithms(const Profile& profile);

}  // namespace latecomer::profiles::cli

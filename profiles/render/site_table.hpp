// SPDX-License-Identifier: BSD-3-Clause
// The table of call sites that `report` and `top` print.
#pragma once

#include "profiles/format/reader.hpp"

namespace latecomer::profiles {

/// Prints the first `most` sites in the order of the profile. `wide`: with all columns and their meanings, and with the
/// callers of each site, in lines of any length. Else with the callers of the first site, in lines of at most
/// kLineWidth.
void print_sites(const Profile& profile, std::size_t most, bool wide);

}  // namespace latecomer::profiles

// SPDX-License-Identifier: BSD-3-Clause
// The table of call sites that `report` and `top` print.
#pragma once

#include "profiles/render/shown_sites.hpp"

namespace latecomer::profiles {

/// Moves the sites forward that take at least 1% of the ranks' time, or that ranks wait in for as long.
void put_large_first(const Profile& profile, std::vector<const Site*>& sites);

/// Prints the first `most` sites. `wide`: with all columns and their meanings, and with the callers of each site, in
/// lines of any length. Else with the callers of the first site, in lines of at most kLineWidth.
void print_sites(const Profile& profile, const std::vector<const Site*>& sites, std::size_t most, bool wide);

}  // namespace latecomer::profiles

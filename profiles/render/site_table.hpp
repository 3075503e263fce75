// SPDX-License-Identifier: BSD-3-Clause
// The table of call sites that `report` and `top` print.
#pragma once

#include "profiles/format/reader.hpp"

namespace latecomer::cli {

/// Prints the first `most` sites in the order of the profile, and what the columns mean.
void print_sites(const Profile& profile, int most);

}  // namespace latecomer::cli

// SPDX-License-Identifier: BSD-3-Clause
// The record of arrivals, reduced for the HTML page: ranks by time, and arrivals over time for the sites with the
// longest waits.
#pragma once

#include "profiles/format/reader.hpp"

namespace latecomer::profiles {

/// null if the profile has no record of arrivals, or if no call is in it.
Json page_arrivals(const Profile& profile);

}  // namespace latecomer::profiles

// SPDX-License-Identifier: BSD-3-Clause
// The Open Trace Format 2 of Score-P, Vampir and Cube. Needs the library OTF2 when latecomer is built.
#pragma once

#include <string>

#include "profiles/format/reader.hpp"

namespace latecomer::profiles {

/// Writes the archive `folder`/traces.otf2: a location group per rank below the node of its host, a region per call
/// site, and inside it the regions `waiting` and `after the last arrival`. Returns the number of visits that the
/// archive cannot hold: those without a known end, and those that overlap another one. Throws BadUsage without OTF2,
/// and if `folder` exists.
std::size_t write_otf2(const Profile& profile, const RecordedArrivals& record, const std::string& folder);

}  // namespace latecomer::profiles

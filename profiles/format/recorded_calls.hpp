// SPDX-License-Identifier: BSD-3-Clause
// Reads the record of arrivals of a profile, for replays and for the formats of other tools.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "profiles/record/recorded_calls.hpp"

namespace latecomer::profiles {

/// Reads the record of a profile that has one. `file` names the profile in errors. Throws BadUsage if it is damaged.
RecordedArrivals recorded_arrivals(const nlohmann::ordered_json& profile, const std::string& file);

}  // namespace latecomer::profiles

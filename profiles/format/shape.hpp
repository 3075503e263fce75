// SPDX-License-Identifier: BSD-3-Clause
// Checks a profile against docs/schema/profile.schema.json, so that no reader meets a value of a wrong type. Does not
// check the meaning of values.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace latecomer::profiles {

/// Returns "", or the first mistake with its place: `sites[3].calls: expected integer, got "many"`. Ignores keys that
/// the schema does not have, and the `ranks` of sites, which reader.cpp reads.
std::string profile_shape_problem(const nlohmann::json& profile);

}  // namespace latecomer::profiles

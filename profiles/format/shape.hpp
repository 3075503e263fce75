// SPDX-License-Identifier: BSD-3-Clause
// The JSON Schema of profiles, and the check of a profile against it, so that no reader meets a value of a wrong type.
// Does not check the meaning of values.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace latecomer::profiles {

/// docs/schema/profile.schema.json, with the keys of profile_keys.hpp as this build has them.
nlohmann::ordered_json profile_schema();

/// Returns "", or the first mistake with its place: `sites[3].calls: expected integer, got "many"`. Ignores keys that
/// the schema does not have.
std::string profile_shape_problem(const nlohmann::json& profile);

/// Whether a number can be of a profile: sums of such numbers and conversions to integers do not overflow. Derived: no
/// run has times, calls or bytes above 2^62.
inline bool is_sane(double number) { return std::abs(number) < 0x1p62; }

}  // namespace latecomer::profiles

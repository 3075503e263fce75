// SPDX-License-Identifier: BSD-3-Clause
// The code that ranks ran before their calls, in a profile.
#pragma once

#include <nlohmann/json.hpp>

#include "profiles/record/merged.hpp"

namespace latecomer::profiles {

/// The value of the profile's key `code`. `per_row`: ranks that share a row.
nlohmann::ordered_json code_json(const Merged& all, int per_row);

}  // namespace latecomer::profiles

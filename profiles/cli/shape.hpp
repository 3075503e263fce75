// SPDX-License-Identifier: BSD-3-Clause
// Whether a profile has the shape that docs/schema/profile.schema.json publishes, so that no reader meets a value of
// another type. Does not judge what the values mean.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace latecomer::cli {

/// "" or the first place that differs and what is expected there: `sites[3].calls: expected integer, got "many"`.
/// Keys that the schema does not know are ignored, and so are a site's `ranks`, which profile_file.cpp reads by itself.
std::string profile_shape_problem(const nlohmann::json& profile);

}  // namespace latecomer::cli

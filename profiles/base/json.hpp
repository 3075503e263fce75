// SPDX-License-Identifier: BSD-3-Clause
// JSON texts from files that latecomer did not check, and JSON texts of strings that came from anywhere: arguments,
// paths, names in debug information. All readers and writers of profiles/ use these two functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/base/result.hpp"
#include "profiles/base/share.hpp"

namespace latecomer::profiles {

/// The value of a JSON text. The message of an error names the line where it is known.
core::Result<nlohmann::ordered_json> parse_json(std::string_view text);

/// The text of a value. U+FFFD replaces invalid UTF-8 in its strings. Indentation as in nlohmann::json::dump().
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

/// null: not known.
nlohmann::ordered_json share_json(Share share);

}  // namespace latecomer::profiles

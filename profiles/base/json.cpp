// SPDX-License-Identifier: BSD-3-Clause
// Parses and writes JSON with nlohmann/json.
#include "profiles/base/json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/text.hpp"

namespace latecomer::profiles {

using Json = nlohmann::ordered_json;

core::Result<Json> parse_json(std::string_view text) {
  if (const std::string deep = core::nested_too_deep(text); !deep.empty()) return core::Error{deep};
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& e) {
    const auto read = text.substr(0, e.byte);
    return core::Error{"line " + std::to_string(1 + std::ranges::count(read, '\n')) + ": not JSON"};
  } catch (const Json::exception&) {
    return core::Error{"not JSON: a number is out of range"};
  }
}

std::string json_text(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

nlohmann::ordered_json share_json(Share share) {
  return share.known() ? nlohmann::ordered_json(share.value()) : nlohmann::ordered_json(nullptr);
}

}  // namespace latecomer::profiles

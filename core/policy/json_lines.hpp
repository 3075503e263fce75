// SPDX-License-Identifier: BSD-3-Clause
// JSON values with line numbers. nlohmann/json parses the text, but its own tree keeps no positions.
// Keeps duplicate keys, so that the policy parser can report them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"

namespace latecomer::core {

struct JsonMember;

struct JsonValue {
  enum class Type { null, boolean, integer, number, string, array, object } type = Type::null;
  int line = 0;
  bool boolean = false;
  double number = 0;                // integer and number
  long long integer = 0;            // integer
  std::string text;                 // string; of other types the source text, for messages
  std::vector<JsonMember> members;  // object, in file order
  std::vector<JsonValue> items;     // array
  const JsonValue* find(std::string_view key) const;
};

/// A struct, because std::pair must be complete before clang makes a vector of it.
struct JsonMember {
  std::string key;
  JsonValue value;
};

/// Parses a JSON text. The message of an error starts with "line N: ".
Result<JsonValue> parse_json(std::string_view text);

}  // namespace latecomer::core

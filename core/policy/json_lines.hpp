// SPDX-License-Identifier: BSD-3-Clause
// JSON with line numbers: nlohmann/json does the parsing, this keeps where every value stands, which its
// own tree does not. Duplicate keys are kept so that they can be reported.
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
  std::string text;                 // string; for others, how it was written, for messages
  std::vector<JsonMember> members;  // object, in file order
  std::vector<JsonValue> items;     // array
  const JsonValue* find(std::string_view key) const;
};

/// Not std::pair, which must be complete before clang makes a vector of it.
struct JsonMember {
  std::string key;
  JsonValue value;
};

/// The value, or an error whose message starts with "line N: ".
Result<JsonValue> parse_json(std::string_view text);

}  // namespace latecomer::core

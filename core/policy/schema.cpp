// SPDX-License-Identifier: BSD-3-Clause
// Generates the JSON Schema of the policy file from the tables of keys.
#include <nlohmann/json.hpp>

#include "core/policy/keys.hpp"

namespace latecomer::core {
namespace {

using Json = nlohmann::ordered_json;

Json list_choices(const KeyRow& row) {
  Json out = Json::array();
  for (const std::string_view choice : split_choices(row)) out.push_back(std::string(choice));
  return out;
}

Json object_of(std::span<const KeyRow> table, std::string_view prefix);

Json bounded(const char* type, const KeyRow& row) {
  Json out{{"type", type}, {"minimum", row.min}};
  if (row.max < 1e15) out["maximum"] = row.max;
  return out;
}

Json type_of(std::span<const KeyRow> table, const KeyRow& row) {
  Json size{{"anyOf", Json::array({Json{{"type", "integer"}, {"minimum", 0}},
                                   Json{{"type", "string"}, {"pattern", "^[0-9]+(\\.[0-9]+)?([KMGT]i?)?B?$"}}})}};
  const auto range = [](const Json& end) {
    return Json{{"type", "object"}, {"properties", {{"min", end}, {"max", end}}}, {"additionalProperties", false}};
  };
  switch (row.type) {
    case KeyType::boolean:
      return {{"type", "boolean"}};
    case KeyType::integer: {
      if (row.path == "ports") return {{"anyOf", Json::array({bounded("integer", row), Json{{"const", "link"}}})}};
      return bounded("integer", row);
    }
    case KeyType::number:
      return bounded("number", row);
    case KeyType::share:
      return {{"anyOf", Json::array({bounded("number", row), Json{{"type", "null"}}})}};
    case KeyType::text:
    case KeyType::file_name:
      if (row.fallback == kNoText) return {{"type", "string"}};
      return {{"type", "string"}, {"minLength", 1}};
    case KeyType::choice:
      return {{"enum", list_choices(row)}};
    case KeyType::size:
      return size;
    case KeyType::range:
      return range({{"type", "number"}, {"minimum", 0}});
    case KeyType::size_range:
      return range(size);
    case KeyType::choice_list:
      return {
          {"anyOf", Json::array({Json{{"enum", list_choices(row)}},
                                 Json{{"type", "array"}, {"minItems", 1}, {"items", {{"enum", list_choices(row)}}}}})}};
    case KeyType::text_list:
      return {{"type", "array"}, {"items", {{"type", "string"}, {"minLength", 1}}}};
    case KeyType::object:
      return object_of(table, std::string(row.path) + ".");
    case KeyType::object_or_false:
      return {{"anyOf", Json::array({Json{{"const", false}}, object_of(table, std::string(row.path) + ".")})}};
    case KeyType::network:
      return {{"anyOf", Json::array({Json{{"enum", {"measure", "tryton2018", "eth1g", "fdr", "hdr"}}},
                                     object_of(network_keys(), "")})}};
    case KeyType::array: {
      Json use = object_of(use_keys(), "");
      use["required"] = {"algorithm"};
      const Json rule{{"type", "object"},
                      {"properties",
                       {{"match", object_of(match_keys(), "")},
                        {"use", {{"anyOf", Json::array({Json{{"type", "string"}}, use})}}},
                        {"comment", {{"type", "string"}}}}},
                      {"required", {"match", "use"}},
                      {"additionalProperties", false}};
      return {{"type", "array"}, {"items", rule}};
    }
    default:
      return Json::object();
  }
}

Json object_of(std::span<const KeyRow> table, std::string_view prefix) {
  Json properties = Json::object();
  for (const KeyRow& row : table) {
    if (!row.path.starts_with(prefix) || row.path.find('.', prefix.size()) != std::string_view::npos) continue;
    Json entry = type_of(table, row);
    if (!row.fallback.empty()) entry["default"] = Json::parse(row.fallback);
    entry["description"] = std::string(row.doc);
    properties[std::string(row.path.substr(prefix.size()))] = entry;
  }
  return {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
}

}  // namespace

std::string policy_schema() {
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "latecomer policy"}};
  schema["description"] =
      "The policy of a job: the calls that latecomer may replace, and how. A file with a mistake is not used: a "
      "warning names the file, line, key and remedy, and the library only observes. Rank 0 reads the file and all "
      "ranks get its bytes.";
  schema.update(object_of(policy_keys(), ""));
  schema["required"] = {"version"};
  return schema.dump(2) + "\n";
}

}  // namespace latecomer::core

// SPDX-License-Identifier: BSD-3-Clause
// The parser of the policy file. It checks each key by its row in the tables of keys, and reports every mistake.
#include <algorithm>
#include <cstdio>

#include "core/base/text.hpp"
#include "core/policy/json_lines.hpp"
#include "core/policy/keys.hpp"
#include "core/policy/review.hpp"

namespace latecomer::core {
namespace {

std::string quoted(const JsonValue& v) { return v.type == JsonValue::Type::string ? "\"" + v.text + "\"" : v.text; }

std::string limits(const KeyRow& row) {
  const std::string low = significant(row.min, 15);
  if (row.max >= kNoLimit) return " >= " + low;
  return " from " + low + " to " + std::to_string(static_cast<long long>(row.max));
}

constexpr char kSomeText[] = "a non-empty string";

class Parser {
 public:
  explicit Parser(PolicyReport& report) : report_(report), policy_(report.policy) {}

  void run(const JsonValue& root) {
    if (!require(root.type == JsonValue::Type::object, root, "", "an object")) return;
    policy_.network = *network_preset("fdr");
    walk(root, "");
    if (!root.find("version")) problem(root, "version", "missing: write \"version\": 1");
    if (report_.ok()) review_rules(report_);
  }

 private:
  void problem(const JsonValue& at, const std::string& path, const std::string& message) {
    report_.problems.push_back({at.line, path, message});
  }
  /// Reports a value that does not fit, and returns whether it does.
  bool require(bool fits, const JsonValue& v, const std::string& path, const std::string& expected) {
    if (!fits) problem(v, path, "expected " + expected + ", got " + quoted(v));
    return fits;
  }
  void note(int line, const std::string& path, const std::string& message) {
    report_.notes.push_back({line, path, message});
  }

  /// The names of the keys directly below `prefix` ("" or "predictor.").
  static std::vector<std::string_view> names_below(std::span<const KeyRow> table, std::string_view prefix) {
    std::vector<std::string_view> names;
    for (const KeyRow& row : table)
      if (row.path.starts_with(prefix) && row.path.find('.', prefix.size()) == std::string_view::npos)
        names.push_back(row.path.substr(prefix.size()));
    return names;
  }

  /// The row of a key, or nullptr. Reports unknown and repeated keys.
  const KeyRow* row_of(std::span<const KeyRow> table, std::string_view prefix, const std::string& shown,
                       const JsonValue& object, std::size_t index) {
    const auto& [key, value] = object.members[index];
    for (std::size_t i = 0; i < index; ++i)
      if (object.members[i].key == key) {
        problem(value, shown + key, "given twice");
        return nullptr;
      }
    for (const KeyRow& row : table)
      if (row.path == std::string(prefix) + key) return &row;
    problem(value, shown + key, "unknown key" + suggestion(key, names_below(table, prefix)));
    return nullptr;
  }

  /// Checks a value against its row. Reports an error and returns false if the type, range or word is wrong.
  bool valid(const KeyRow& row, const JsonValue& v, const std::string& path) {
    using Type = JsonValue::Type;
    const bool in_limits = v.number >= row.min && v.number <= row.max;
    switch (row.type) {
      case KeyType::boolean:
        return require(v.type == Type::boolean, v, path, "true or false");
      case KeyType::integer:
        return require(v.type == Type::integer && in_limits, v, path, "an integer" + limits(row));
      case KeyType::number:
        return require((v.type == Type::integer || v.type == Type::number) && in_limits, v, path,
                       "a number" + limits(row));
      case KeyType::share:
        return v.type == Type::null || require((v.type == Type::integer || v.type == Type::number) && in_limits, v,
                                               path, "null or a number" + limits(row));
      case KeyType::size:
        return size(v, path) >= 0;
      case KeyType::text:
        return require(v.type == Type::string && (!v.text.empty() || row.fallback == kNoText), v, path, kSomeText);
      case KeyType::file_name:
        return require(v.type == Type::string && !v.text.empty(), v, path, kSomeText) && has_known_patterns(v, path);
      case KeyType::choice:
        return choice(row, v, path);
      case KeyType::choice_list:
        if (v.type == Type::array && !v.items.empty()) {
          bool good = true;
          for (std::size_t i = 0; i < v.items.size(); ++i)
            good = choice(row, v.items[i], path + "[" + std::to_string(i) + "]") && good;
          return good;
        }
        return choice(row, v, path);
      case KeyType::text_list:
        if (!require(v.type == Type::array, v, path, "a list of strings")) return false;
        for (std::size_t i = 0; i < v.items.size(); ++i)
          if (!require(v.items[i].type == Type::string && !v.items[i].text.empty(), v.items[i],
                       path + "[" + std::to_string(i) + "]", kSomeText))
            return false;
        return true;
      case KeyType::object:
        return require(v.type == Type::object, v, path, "an object");
      case KeyType::object_or_false:
        return (v.type == Type::boolean && !v.boolean) ||
               require(v.type == Type::object, v, path, "an object or false");
      case KeyType::array:
        return require(v.type == Type::array, v, path, "a list");
      default:
        return true;
    }
  }

  bool choice(const KeyRow& row, const JsonValue& v, const std::string& path) {
    const auto choices = split_choices(row);
    if (v.type == JsonValue::Type::string && std::find(choices.begin(), choices.end(), v.text) != choices.end())
      return true;
    problem(v, path, "unknown value " + quoted(v) + suggestion(v.text, choices));
    return false;
  }

  bool has_known_patterns(const JsonValue& v, const std::string& path) {
    for (std::size_t at = v.text.find('%'); at != std::string::npos; at = v.text.find('%', at + 2)) {
      if (at + 1 < v.text.size() && std::string_view("juhp%").find(v.text[at + 1]) != std::string_view::npos) continue;
      problem(v, path, "unknown pattern '" + v.text.substr(at, 2) + "', valid are %j, %u, %h, %p and %%");
      return false;
    }
    return true;
  }

  /// The size in bytes, or -1 after reporting an error.
  Bytes size(const JsonValue& v, const std::string& path) {
    if (v.type == JsonValue::Type::integer && v.integer >= 0) return v.integer;
    std::string why = "expected an integer >= 0 or a size such as \"64KiB\", got " + quoted(v);
    if (v.type == JsonValue::Type::string) {
      const auto bytes = parse_bytes(v.text);
      if (bytes) return *bytes;
      why = bytes.error();
    }
    problem(v, path, why);
    return -1;
  }

  void walk(const JsonValue& object, const std::string& prefix) {
    for (std::size_t i = 0; i < object.members.size(); ++i) {
      const KeyRow* row = row_of(policy_keys(), prefix, prefix, object, i);
      const JsonValue& v = object.members[i].value;
      if (!row || !valid(*row, v, std::string(row->path))) continue;
      const bool object = v.type == JsonValue::Type::object;
      if (object && (row->type == KeyType::object || row->type == KeyType::object_or_false))
        walk(v, std::string(row->path) + ".");
      else if (row->type == KeyType::network) network(v);
      else if (row->type == KeyType::array) rules(v);
      else if (row->set) row->set(policy_, *row, v);
    }
  }

  void network(const JsonValue& v) {
    if (v.type == JsonValue::Type::string) {
      if (v.text == "measure") {
        policy_.network_measure = true;
        return;
      }
      const auto preset = network_preset(v.text);
      if (!preset) return problem(v, "network", preset.error() + " or \"measure\"");
      policy_.network = *preset;
      policy_.network_given = true;
      return;
    }
    if (!require(v.type == JsonValue::Type::object, v, "network", "a preset's name, \"measure\" or an object")) return;
    Network n;
    for (std::size_t i = 0; i < v.members.size(); ++i) {
      const auto& [key, value] = v.members[i];
      const KeyRow* row = row_of(network_keys(), "", "network.", v, i);
      if (!row) continue;
      if (key == "ports" && value.text == "link") n.ports = 0;
      else if (!valid(*row, value, "network." + key)) continue;
      else if (key == "eager") n.eager_bytes = size(value, "network.eager");
      else if (key == "ports") n.ports = static_cast<int>(value.integer);
      else if (key == "duplex") n.half_duplex = value.text == "half";
      else if (key == "ranks_per_host") n.ranks_per_host = static_cast<int>(value.integer);
      else
        for (const NetworkTime& time : kNetworkTimes)
          if (time.key == key) n.*time.value = value.number * time.unit;
    }
    policy_.network = n;
    policy_.network_given = true;
  }

  Range range(const KeyRow& row, const JsonValue& v, const std::string& path) {
    Range out;
    static constexpr std::string_view kEnds[] = {"min", "max"};
    if (!require(v.type == JsonValue::Type::object, v, path, "{\"min\": , \"max\": }")) return out;
    for (const auto& [key, value] : v.members) {
      const std::string at = path + "." + key;
      if (key != "min" && key != "max") {
        problem(value, at, "unknown key" + suggestion(key, kEnds));
        continue;
      }
      double number = -1;
      if (row.type == KeyType::size_range) number = static_cast<double>(size(value, at));
      else if (valid({row.path, KeyType::number, "", row.min, row.max, "", nullptr, ""}, value, at))
        number = value.number;
      if (number >= 0) (key == "min" ? out.min : out.max) = number;
    }
    if (out.min > out.max) problem(v, path, "min is larger than max: no call can match");
    return out;
  }

  void match(const JsonValue& v, const std::string& path, Match& m) {
    if (!require(v.type == JsonValue::Type::object, v, path, "an object")) return;
    const auto each = [](const JsonValue& list, auto&& fn) {
      if (list.type == JsonValue::Type::array)
        for (const JsonValue& item : list.items) fn(item.text);
      else fn(list.text);
    };
    for (std::size_t i = 0; i < v.members.size(); ++i) {
      const auto& [key, value] = v.members[i];
      const std::string at = path + "." + key;
      const KeyRow* row = row_of(match_keys(), "", path + ".", v, i);
      if (!row || !valid(*row, value, at)) continue;
      if (key == "op")
        each(value,
             [&](const std::string& word) { m.ops.push_back(static_cast<Collective>(index_of_choice(*row, word))); });
      else if (key == "op_class")
        each(value, [&](const std::string& word) {
          m.op_classes.push_back(static_cast<OpClass>(index_of_choice(*row, word) + 1));
        });
      else if (key == "bytes") m.bytes = range(*row, value, at);
      else if (key == "comm_size") m.comm_size = range(*row, value, at);
      else if (key == "root") m.root = range(*row, value, at);
      else if (key == "imbalance_factor") m.imbalance_factor = range(*row, value, at);
      else if (key == "site") m.site = value.text;
    }
  }

  void rules(const JsonValue& v) {
    for (std::size_t i = 0; i < v.items.size(); ++i) rule(v.items[i], "rules[" + std::to_string(i) + "]");
  }

  void rule(const JsonValue& v, const std::string& path) {
    static constexpr std::string_view kRuleKeys[] = {"match", "use", "comment"};
    if (!require(v.type == JsonValue::Type::object, v, path, "an object")) return;
    for (const auto& [key, value] : v.members)
      if (key == "comment" && value.type == JsonValue::Type::string) continue;
      else if (key != "match" && key != "use")
        problem(value, path + "." + key, "unknown key" + suggestion(key, kRuleKeys));
    Rule out;
    out.line = v.line;
    const std::size_t before = report_.problems.size();
    if (const JsonValue* m = v.find("match")) match(*m, path + ".match", out.match);
    else problem(v, path + ".match", "missing: write \"match\": {} to match every call");
    if (const JsonValue* u = v.find("use")) use(*u, path + ".use", out, report_.problems.size() > before);
    else problem(v, path + ".use", "missing: an algorithm's name, \"auto\" or \"native\"");
    policy_.rules.push_back(std::move(out));
  }

  void use(const JsonValue& v, const std::string& path, Rule& rule, bool match_is_wrong) {
    Use& u = rule.use;
    std::string name;
    const JsonValue *named = &v, *segments = nullptr;
    if (v.type == JsonValue::Type::object) {
      for (std::size_t i = 0; i < v.members.size(); ++i) {
        const auto& [key, value] = v.members[i];
        const KeyRow* row = row_of(use_keys(), "", path + ".", v, i);
        if (!row || !valid(*row, value, path + "." + key)) continue;
        if (key == "algorithm") {
          name = value.text;
          named = &value;
        } else if (key == "segments") {
          u.segments = static_cast<int>(value.integer);
          segments = &value;
        } else u.overlap = value.boolean;
      }
      if (!v.find("algorithm"))
        return problem(v, path + ".algorithm", "missing: an algorithm's name, \"auto\" or \"native\"");
      if (name.empty()) return;
    } else if (v.type == JsonValue::Type::string) {
      name = v.text;
    } else {
      return problem(v, path, "expected a name or an object, got " + quoted(v));
    }
    if (name == "native") return;
    if (name == "auto") {
      u.kind = Use::Kind::automatic;
      for (const Collective op : rule.match.ops)
        if (!is_dispatched(op))
          note(rule.line, path,
               std::string(name_of(op)) +
                   ": no algorithm serves this collective, so it is observed only and stays native under auto");
      return;
    }
    u.kind = Use::Kind::algorithm;
    u.algorithm = name;
    if (match_is_wrong) return;
    const std::string place = named == &v ? path : path + ".algorithm";
    const std::vector<Collective>& ops = rule.match.ops;
    std::vector<std::string_view> choices;  // algorithms of the rule's collectives, without duplicates
    bool exists = false;
    for (const Algorithm& a : catalogue()) {
      if (!is_dispatched(a.op)) continue;
      exists = exists || a.name == name;
      if ((ops.empty() || std::find(ops.begin(), ops.end(), a.op) != ops.end()) &&
          std::find(choices.begin(), choices.end(), a.name) == choices.end())
        choices.push_back(a.name);
    }
    choices.insert(choices.end(), {"auto", "native"});
    if (!exists) return problem(*named, place, "unknown algorithm \"" + name + "\"" + suggestion(name, choices));
    if (rule.match.ops.empty())
      return problem(
          *named, place,
          "\"" + name + "\" needs a match.op with this algorithm: write \"op\": \"" + std::string(owner(name)) + "\"");
    for (const Collective op : rule.match.ops) {
      const Algorithm* a = is_dispatched(op) ? find_algorithm(op, name) : nullptr;
      if (!a && !is_dispatched(op)) {
        problem(*named, place,
                std::string(name_of(op)) + " has no algorithm \"" + name +
                    "\": no algorithm serves it, so it is observed only: write \"native\"");
        continue;
      }
      if (!a) {
        auto names = algorithm_names(op);
        names.insert(names.end(), {"auto", "native"});
        problem(*named, place,
                std::string(name_of(op)) + " has no algorithm \"" + name + "\"" + suggestion(name, names));
        continue;
      }
      if (!a->keeps_rank_order() && !rule.match.op_classes.empty() &&
          std::all_of(rule.match.op_classes.begin(), rule.match.op_classes.end(),
                      [](OpClass c) { return c == OpClass::user_noncommutative; }))
        problem(*named, place,
                "\"" + name +
                    "\" reorders operands and cannot serve user_noncommutative: use recursive_doubling, linear or "
                    "rabenseifner");
      if (segments && a->segments == Segments::none)
        problem(*segments, path + ".segments", "\"" + name + "\" takes no segments");
    }
  }

  static std::string_view owner(std::string_view name) {
    for (const Algorithm& a : catalogue())
      if (a.name == name && is_dispatched(a.op)) return name_of(a.op);
    return "";
  }

  PolicyReport& report_;
  Policy& policy_;
};

bool is_text(const JsonValue& v, std::string_view text) { return v.type == JsonValue::Type::string && v.text == text; }

/// Whether a rule names another algorithm than the native collective.
bool asks_for_another(const JsonValue& rule) {
  const JsonValue* use = rule.find("use");
  if (const JsonValue* name = use ? use->find("algorithm") : nullptr) use = name;
  return !use || !is_text(*use, "native");
}

bool asks_to_apply(const JsonValue& root) {
  bool mode = false, another = false;
  for (const auto& [key, value] : root.members) {
    // A key that is spelt wrong may stand for "mode".
    mode = mode || is_text(value, "apply") || (key == "mode" && !is_text(value, "observe") && !is_text(value, "off"));
    if (key != "rules") continue;
    another = another || asks_for_another(value);  // one rule without its list
    if (value.type != JsonValue::Type::array) continue;
    another = std::any_of(value.items.begin(), value.items.end(), asks_for_another);
  }
  return mode && another;
}

}  // namespace

PolicyReport parse_policy(std::string_view text) {
  PolicyReport report;
  const auto root = parse_json(text);
  if (!root) {
    int line = 1;
    (void)std::sscanf(root.error().c_str(), "line %d", &line);
    const std::size_t colon = root.error().find(": ");
    report.problems.push_back({line, "", root.error().substr(colon + 2)});
    report.asks_to_apply =
        text.find("\"apply\"") != std::string_view::npos && text.find("\"use\"") != std::string_view::npos;
    return report;
  }
  report.asks_to_apply = asks_to_apply(*root);
  Parser(report).run(*root);
  std::stable_sort(report.problems.begin(), report.problems.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  return report;
}

}  // namespace latecomer::core

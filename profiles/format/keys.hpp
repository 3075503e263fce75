// SPDX-License-Identifier: BSD-3-Clause
// The keys of an object of the profile as a table. A row has a key's name and meaning, the value of the object that is
// written, and the members of objects that keep it when it is read. The writer, the reader and the schema use it.
#pragma once

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "profiles/base/json.hpp"
#include "profiles/record/histogram.hpp"

namespace latecomer::profiles {

/// Ranks and numbers of ranks in a file: only a damaged profile has others.
inline long rank_in(double value) { return static_cast<long>(std::clamp(value, -1.0, 1e9)); }

template <class T>
constexpr bool kIsOptional = false;
template <class T>
constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
constexpr bool kMayBeNegative = std::is_signed_v<T>;
template <class T>
constexpr bool kMayBeNegative<std::optional<T>> = std::is_signed_v<T>;

/// Counts are integers, times of either type are numbers. Below 0 is nothing but values with a sign.
template <class T>
nlohmann::ordered_json schema_of(bool sign) {
  using Json = nlohmann::ordered_json;
  if constexpr (kIsOptional<T>) return {{"anyOf", {schema_of<typename T::value_type>(sign), {{"type", "null"}}}}};
  else if constexpr (std::is_same_v<T, bool>) return {{"type", "boolean"}};
  else if constexpr (std::is_arithmetic_v<T>) {
    Json out = {{"type", std::is_floating_point_v<T> || std::is_same_v<T, std::int64_t> ? "number" : "integer"}};
    if (!sign) out["minimum"] = 0;
    return out;
  } else return {{"type", "string"}};
}

/// `Of` gives the value: a member of the object that is written, or a function of it. Each of `In` is a member of an
/// object that is read.
template <class Of, class... In>
struct Key {
  std::string_view name, meaning;
  Of of;
  std::tuple<In...> in;
  bool sign = false;   ///< the value may be below 0
  bool older = false;  ///< profiles of earlier versions lack the key
  bool spare = false;  ///< the key is left out where the value is zero, empty or not known

  constexpr Key with_sign() const { return {name, meaning, of, in, true, older, spare}; }
  constexpr Key if_newer() const { return {name, meaning, of, in, sign, true, spare}; }
  constexpr Key if_any() const { return {name, meaning, of, in, sign, older, true}; }

  template <class From>
  using Value = std::remove_cvref_t<std::invoke_result_t<Of, const From&>>;
  template <class Value>
  bool leaves_out(const Value& value) const {
    if constexpr (kIsOptional<Value>) return spare && !value;
    else return spare && value == Value();
  }
  /// The value as it is written. The reader refuses values below 0 where none may be: clocks that err make some.
  template <class From>
  decltype(auto) value_of(const From& from) const {
    if constexpr (kMayBeNegative<Value<From>>) {
      Value<From> value = std::invoke(of, from);
      if (!sign && value < 0 && value != Value<From>()) value = 0;  // an empty optional is below 0, too
      return value;
    } else {
      return std::invoke(of, from);
    }
  }
  template <class T>
  static nlohmann::ordered_json json_of(const T& value) {
    if constexpr (kIsOptional<T>) return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
    else return value;
  }
  template <class From>
  void write(nlohmann::ordered_json& out, const From& from) const {
    const auto& value = value_of(from);
    if (!leaves_out(value)) out[std::string(name)] = json_of(value);
  }
  template <class From>
  void append(std::string& out, const From& from) const {
    const auto& value = value_of(from);
    if (leaves_out(value)) return;
    ((out += out.ends_with('{') ? "\"" : ",\"") += name) += "\":";
    if constexpr (std::is_same_v<Value<From>, double>) write_number(out, value);
    else if constexpr (std::is_integral_v<Value<From>>) out += std::to_string(value);
    else out += json_text(json_of(value));
  }
  /// Gives the value to the members of `to`, if it has some of this key.
  template <class To, class Read>
  void give(To& to, const Read& read) const {
    std::apply([&](auto... member) { (give_one(member, to, read), ...); }, in);
  }
  template <class Object, class T, class To, class Read>
  static void give_one(T Object::*member, To& to, const Read& read) {
    if constexpr (std::is_base_of_v<Object, To>) read(to.*member);
  }
};

/// A row. No command reads the key, or one object keeps it, or either of two does.
template <class Of>
constexpr Key<Of> key(std::string_view name, std::string_view meaning, Of of) {
  return {name, meaning, of, {}};
}
template <class In, class Of>
constexpr Key<Of, In> key(std::string_view name, std::string_view meaning, In in, Of of) {
  return {name, meaning, of, {in}};
}
template <class In, class Or, class Of>
constexpr Key<Of, In, Or> key(std::string_view name, std::string_view meaning, In in, Or other, Of of) {
  return {name, meaning, of, {in, other}};
}

template <class T>
void read_value(const nlohmann::ordered_json& from, T& to) {
  if constexpr (kIsOptional<T>) {
    if (from.is_null()) to.reset();
    else read_value(from, to.emplace());
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (from.is_string()) to = from.get<std::string>();
  } else if constexpr (std::is_same_v<T, long>) {
    if (from.is_number()) to = rank_in(from.get<double>());
  } else if (std::is_same_v<T, bool> ? from.is_boolean() : from.is_number()) {
    to = from.get<T>();
  }
}

template <class... Keys>
struct KeyTable {
  std::tuple<Keys...> keys;

  template <class Visit>
  constexpr void each(Visit visit) const {
    std::apply([&](const auto&... key) { (visit(key), ...); }, keys);
  }
  template <class From>
  void write(nlohmann::ordered_json& out, const From& from) const {
    each([&](const auto& key) { key.write(out, from); });
  }
  template <class From>
  nlohmann::ordered_json json(const From& from) const {
    nlohmann::ordered_json out = nlohmann::ordered_json::object();
    write(out, from);
    return out;
  }
  /// The same as text, to an object that has begun with '{'.
  template <class From>
  void append(std::string& out, const From& from) const {
    each([&](const auto& key) { key.append(out, from); });
  }
  /// What is not there, or of another type, stays as it is in `to`.
  template <class To>
  void read(const nlohmann::ordered_json& from, To& to) const {
    each([&](const auto& key) {
      if (const auto at = from.find(key.name); at != from.end())
        key.give(to, [&](auto& member) { read_value(*at, member); });
    });
  }
  template <class To>
  To as(const nlohmann::ordered_json& from) const {
    To out{};
    read(from, out);
    return out;
  }
  /// Adds the keys, as an object made from `From` has them, to the schema of the object. `optional`: some have none of
  /// them.
  template <class From>
  void describe(nlohmann::ordered_json& schema, bool optional = false) const {
    std::vector<std::string> required = schema.value("required", std::vector<std::string>());
    each([&](const auto& key) {
      using Value = typename std::remove_cvref_t<decltype(key)>::template Value<From>;
      const std::string name(key.name);
      auto& property = schema["properties"][name];
      if constexpr (!std::is_same_v<Value, nlohmann::ordered_json>) {  // else the file describes the object or the list
        const nlohmann::ordered_json before = property;
        property = schema_of<Value>(key.sign);
        if (key.spare && property.contains("anyOf")) property = nlohmann::ordered_json(property["anyOf"][0]);
        if (before.contains("enum")) property = {{"enum", before["enum"]}};  // the texts that the key may have
        if (before.contains("pattern")) property["pattern"] = before["pattern"];
      }
      property["description"] = key.meaning;
      if (optional || key.older || key.spare) std::erase(required, name);
      else if (std::ranges::find(required, name) == required.end()) required.push_back(name);
    });
    schema["required"] = required;
  }
};

template <class... Keys>
constexpr KeyTable<Keys...> table(Keys... keys) {
  return {{keys...}};
}
template <class... One, class... Other>
constexpr KeyTable<One..., Other...> operator+(const KeyTable<One...>& one, const KeyTable<Other...>& other) {
  return {std::tuple_cat(one.keys, other.keys)};
}

}  // namespace latecomer::profiles

// SPDX-License-Identifier: BSD-3-Clause
// Implements the JSON reader: a SAX consumer of nlohmann/json, and an iterator that counts lines.
#include "core/policy/json_lines.hpp"

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/text.hpp"

namespace latecomer::core {
namespace {

struct Lines {
  int next = 1;   // line of the next character
  int token = 1;  // line of the last character that was not white space
};

/// An iterator that feeds the text to the parser. Copies share the line counter.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  CountingIterator(const char* at, Lines* lines) : at_(at), lines_(lines) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    if (*at_ == '\n') ++lines_->next;
    else if (*at_ != ' ' && *at_ != '\t' && *at_ != '\r') lines_->token = lines_->next;
    ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& o) const { return at_ == o.at_; }
  bool operator!=(const CountingIterator& o) const { return at_ != o.at_; }

 private:
  const char* at_;
  Lines* lines_;
};

class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(const Lines& lines) : lines_(lines) { stack_.push_back(&root); }
  JsonValue root;
  std::string problem;

  bool null() override { return leaf(JsonValue::Type::null, "null"); }
  bool boolean(bool v) override {
    add(JsonValue::Type::boolean, v ? "true" : "false").boolean = v;
    return true;
  }
  bool number_integer(number_integer_t v) override { return integer(v); }
  bool number_unsigned(number_unsigned_t v) override {
    if (v > static_cast<number_unsigned_t>(INT64_MAX)) return number_float(static_cast<double>(v), std::to_string(v));
    return integer(static_cast<long long>(v));
  }
  bool number_float(number_float_t v, const string_t& written) override {
    add(JsonValue::Type::number, written).number = v;
    return true;
  }
  bool string(string_t& v) override { return leaf(JsonValue::Type::string, v); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(JsonValue::Type::object); }
  bool start_array(std::size_t) override { return open(JsonValue::Type::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& k) override {
    key_ = k;
    return true;
  }
  bool parse_error(std::size_t, const std::string& token, const nlohmann::detail::exception& e) override {
    std::string what = e.what();
    if (const auto at = what.find("syntax error"); at != std::string::npos) what = what.substr(at);
    if (const auto at = what.find("; last read"); at != std::string::npos)
      what = what.substr(0, at) + " near '" + token + "'";
    problem = "line " + std::to_string(lines_.token) + ": " + what;
    return false;
  }

 private:
  JsonValue& add(JsonValue::Type type, std::string text) {
    JsonValue* parent = stack_.back();
    JsonValue* value = parent;
    if (parent->type == JsonValue::Type::object) value = &parent->members.emplace_back(JsonMember{key_, {}}).value;
    else if (parent->type == JsonValue::Type::array) value = &parent->items.emplace_back();
    value->type = type;
    value->line = lines_.token;
    value->text = std::move(text);
    return *value;
  }
  bool leaf(JsonValue::Type type, std::string text) {
    add(type, std::move(text));
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }
  bool integer(long long v) {
    JsonValue& value = add(JsonValue::Type::integer, std::to_string(v));
    value.integer = v;
    value.number = static_cast<double>(v);
    return true;
  }
  // The parser closes a child before its parent grows, so the pointers on the stack stay valid.
  bool open(JsonValue::Type type) {
    JsonValue& value = add(type, type == JsonValue::Type::object ? "{...}" : "[...]");
    stack_.push_back(&value);
    return true;
  }

  const Lines& lines_;
  std::vector<JsonValue*> stack_;
  std::string key_;
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view key) const {
  for (const auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}

Result<JsonValue> parse_json(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return Error{"line 1: the text is empty"};
  if (std::string deep = nested_too_deep(text); !deep.empty()) return Error{std::move(deep)};
  Lines lines;
  Builder builder(lines);
  const bool ok = nlohmann::json::sax_parse(CountingIterator(text.data(), &lines),
                                            CountingIterator(text.data() + text.size(), &lines), &builder);
  if (!ok) return Error{builder.problem.empty() ? "line 1: not JSON" : builder.problem};
  return std::move(builder.root);
}

}  // namespace latecomer::core

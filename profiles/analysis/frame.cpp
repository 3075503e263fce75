// SPDX-License-Identifier: BSD-3-Clause
// Texts of stack frames.
#include "profiles/analysis/frame.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/base/text.hpp"

namespace latecomer::profiles::analysis {

namespace {

/// The length of the name of an operator after the word "operator": "()" in "operator()(int) const".
std::size_t operator_length(std::string_view rest) {
  if (rest.starts_with("()")) return 2;
  std::size_t n = 0;
  while (n < rest.size() && std::strchr("<>=!+-*/%^&|~[],", rest[n])) ++n;
  return n > 0 ? n : std::min(rest.find('('), rest.size());  // operator new, operator bool
}

}  // namespace

std::string short_name(std::string name) {
  // gfortran's name of a procedure of a module.
  constexpr std::string_view kModule = "_MOD_";
  if (const auto at = name.find(kModule); name.starts_with("__") && at != std::string::npos)
    return name.substr(2, at - 2) + "::" + name.substr(at + kModule.size());
  for (const auto& [begin, text] :
       {std::pair<std::string_view, std::string_view>{"(anonymous namespace)", "{}"}, {"[abi:cxx11]", ""}})
    for (std::size_t at; (at = name.find(begin)) != std::string::npos;) name.replace(at, begin.size(), text);
  // Suffixes of copies that the compiler made of a function.
  if (const auto clone = name.find(" [clone"); clone != std::string::npos) name.resize(clone);
  for (const std::string_view copy : {".isra", ".constprop", ".part", ".cold", ".lto_priv", ".localalias"})
    if (const auto at = name.find(copy); at != std::string::npos && at > 0) name.resize(at);
  constexpr std::string_view kOperator = "operator";
  std::string out;
  std::size_t kept = std::string::npos;  // where the name of an operator begins
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i], last = i > 0 ? name[i - 1] : ' ';
    if (const std::string_view rest = std::string_view(name).substr(i);
        c == 'o' && rest.starts_with(kOperator) && !std::isalnum(last) && last != '_' && rest.size() > 8 &&
        !std::isalnum(rest[8]) && rest[8] != '_') {
      const std::size_t length = kOperator.size() + operator_length(rest.substr(kOperator.size()));
      if (depth == 0) {
        kept = out.size();
        out += rest.substr(0, length);
      }
      i += length - 1;
    } else if (c == '<' || c == '(') {
      ++depth;
    } else if (c == ')' || (c == '>' && last != '-')) {
      --depth;
    } else if (depth == 0) {
      out += c;
    }
  }
  if (depth != 0 || out.empty()) return name;  // Python's <module> is all in brackets
  for (const std::string_view word : {" const", " volatile", " &", " &&"})
    if (out.ends_with(word)) out.resize(out.size() - word.size());
  // A template's name begins with the type of its result.
  out = out.substr(out.rfind(' ', kept == std::string::npos ? kept : std::max<std::size_t>(kept, 1) - 1) + 1);
  // Keep the innermost scopes of a long name.
  constexpr std::size_t kLong = 60;
  for (std::size_t at;
       out.size() > kLong && (at = out.find("::", out.starts_with("...::") ? 5 : 0)) != std::string::npos;)
    out = "...::" + out.substr(at + 2);
  return out;
}

namespace {

/// "function (file:line)" with the parts that are known.
std::string named(const NamedFrame::Name& name, const std::string& otherwise) {
  std::string out = name.function.empty() ? otherwise : short_name(name.function);
  if (!name.file.empty()) out += " (" + core::base_name(name.file) + ":" + std::to_string(name.line) + ")";
  return out;
}

}  // namespace

std::string place_of(const std::vector<NamedFrame>& frames) {
  const bool generated = frames.front().module.empty() && frames.size() > 1;
  return place_of(frames.front()) + (generated ? " from " + place_of(frames[1]) : "");
}

std::string place_of(const NamedFrame& frame) {
  if (frame.module.empty() && !frame.name.function.empty()) return frame.name.function;  // generated code
  const std::string module = core::base_name(frame.module), at = module + "+" + frame.offset;
  const std::string out = named(frame.name, at);
  if (!frame.inlined_into.empty()) return out + " in " + named(frame.inlined_into.back(), at);
  return frame.name.file.empty() && !frame.name.function.empty() ? out + " (" + module + ")" : out;
}

}  // namespace latecomer::profiles::analysis

// SPDX-License-Identifier: BSD-3-Clause
// Names of the frames of a profile.
#include "profiles/symbols/names.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/text.hpp"
#include "profiles/symbols/symbols.hpp"

namespace latecomer::cli {

void resolve_names(Json& profile, Progress::Patience patience) {
  Symbols symbols;
  Progress progress("resolving names, sites", static_cast<std::int64_t>(profile["sites"].size()), patience);
  std::set<std::string> gaps;
  const auto name = [&](Json& frame, bool shown) {
    const std::string offset = frame["offset"].get<std::string>(), module = frame["module"].get<std::string>(),
                      build_id = frame["build_id"].get<std::string>();
    if (!frame["function"].is_null() || offset == "0x0") return;
    progress.begin("in " + core::base_name(module));
    const SymbolNames names = symbols.resolve(module, build_id, std::strtoull(offset.c_str(), nullptr, 16));
    const auto fill = [](Json& to, const SymbolName& from) {
      if (!from.function.empty()) to["function"] = core::utf8(from.function);
      if (!from.file.empty()) to["file"] = core::utf8(from.file), to["line"] = from.line;
    };
    for (std::size_t i = 0; i < names.chain.size(); ++i) {
      Json outer = {{"function", nullptr}, {"file", nullptr}, {"line", nullptr}};
      fill(i == 0 ? frame : outer, names.chain[i]);
      if (i > 0) frame["inlined_into"].push_back(std::move(outer));
    }
    if (!names.near.empty()) frame["near"] = core::utf8(names.near);
    frame["module"] = core::utf8(module);  // raw in frames of a live process
    if (!shown || !frame["file"].is_null()) return;
    if (const std::string gap = symbols.gap(module, build_id); !gap.empty())
      gaps.insert(core::base_name(module) + " " + gap);
  };
  for (Json& site : profile["sites"]) {
    for (Json& frame : site["frames"]) name(frame, &frame == &site["frames"].front());
    if (const auto callers = site.find("callers"); callers != site.end())
      for (Json& caller : *callers)
        for (Json& frame : caller["frames"]) name(frame, false);
    progress.done();
  }
  for (const std::string& gap : gaps) profile["warnings"].push_back(gap);
}

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
  // Copies that the compiler made of a function.
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
      if (depth == 0) kept = out.size(), out += rest.substr(0, length);
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
  // Of a long name, the innermost scopes remain.
  constexpr std::size_t kLong = 60;
  for (std::size_t at;
       out.size() > kLong && (at = out.find("::", out.starts_with("...::") ? 5 : 0)) != std::string::npos;)
    out = "...::" + out.substr(at + 2);
  return out;
}

namespace {

/// "function (file:line)" with the parts that are known.
std::string named(const Json& frame, const std::string& otherwise) {
  std::string out = frame["function"].is_null() ? otherwise : short_name(frame["function"].get<std::string>());
  if (!frame["file"].is_null())
    out +=
        " (" + core::base_name(frame["file"].get<std::string>()) + ":" + std::to_string(frame["line"].get<int>()) + ")";
  return out;
}

}  // namespace

std::string place(const Json& frame) {
  const std::string module = core::base_name(frame["module"].get<std::string>()),
                    at = module + "+" + frame["offset"].get<std::string>();
  if (frame.contains("near")) return "near " + short_name(frame["near"]) + " (" + at + ")";
  std::string out = named(frame, at);
  if (const auto outer = frame.find("inlined_into"); outer != frame.end())
    return out + " in " + named(outer->back(), at);
  if (frame["file"].is_null() && !frame["function"].is_null()) out += " (" + module + ")";
  return out;
}

}  // namespace latecomer::cli

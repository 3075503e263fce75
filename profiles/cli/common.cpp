// SPDX-License-Identifier: BSD-3-Clause
// Helpers of several sub-commands.
#include "profiles/cli/common.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/file.hpp"
#include "core/base/text.hpp"
#include "core/trees/distributions.hpp"
#include "profiles/base/json.hpp"
#include "profiles/cli/commands.hpp"

namespace latecomer::profiles::cli {

core::Collective collective_named(const std::string& name) {
  if (const auto found = core::find_collective(name)) return *found;
  throw BadUsage("--op: unknown collective '" + name + "'" + core::suggestion(name, core::kCollectiveNames));
}

std::vector<const core::Algorithm*> algorithms_named(core::Collective op, const std::string& name) {
  std::vector<const core::Algorithm*> chosen;
  for (const core::Algorithm& a : core::catalogue())
    if (a.op == op && (name == "all" || a.name == name)) chosen.push_back(&a);
  if (!chosen.empty()) return chosen;
  const auto names = core::algorithm_names(op);
  if (names.empty())
    throw BadUsage("--op: this version has no algorithms for '" + std::string(core::name_of(op)) + "'");
  throw BadUsage("--algorithm: unknown algorithm '" + name + "' for " + std::string(core::name_of(op)) +
                 core::suggestion(name, names));
}

bool site_matches(const std::string& id, const std::string& place, const std::string& glob) {
  return core::glob_match(glob, id) || core::glob_match(glob, place);
}

std::vector<double> numbers(const std::string& option, const std::string& text) {
  constexpr std::string_view kFile = "file:";
  std::vector<double> out;
  if (!text.starts_with(kFile)) {
    std::size_t used = 0;
    try {
      out.push_back(std::stod(text, &used));
    } catch (const std::exception&) {
    }
    if (out.empty() || used != text.size())
      throw BadUsage(option + ": expected a number or file:PATH, got '" + text + "'");
    return out;
  }
  const std::string path = text.substr(kFile.size());
  const auto read = core::read_file(path);
  if (!read) throw BadUsage(option + ": " + read.error());
  std::istringstream in(*read);
  for (double x; in >> x;) out.push_back(x);
  if (!in.eof())
    throw BadUsage(option + ": '" + path + "', value " + std::to_string(out.size() + 1) + ": expected a number");
  return out;
}

std::vector<double> sizes_named(const std::string& text) {
  if (text.starts_with("file:")) return numbers("--sizes", text);
  auto sizes = core::parse_distribution(text);
  if (!sizes) throw BadUsage("--sizes: " + sizes.error() + "; or give file:PATH");
  return std::move(*sizes);
}

void print_answer(const nlohmann::ordered_json& answer, int indent) {
  std::printf("%s\n", json_text(answer, indent).c_str());
}

}  // namespace latecomer::profiles::cli

// SPDX-License-Identifier: BSD-3-Clause
// Helpers of several sub-commands.
#include "profiles/cli/common.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "core/base/file.hpp"
#include "core/base/text.hpp"
#include "core/trees/distributions.hpp"
#include "profiles/cli/commands.hpp"

namespace latecomer::cli {

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

std::string human_time(double ns) {
  char text[32];
  const double size = ns < 0 ? -ns : ns;
  if (size >= 1e9) std::snprintf(text, sizeof text, "%.3f s", ns / 1e9);
  else if (size >= 1e6) std::snprintf(text, sizeof text, "%.3f ms", ns / 1e6);
  else if (size >= 1e3) std::snprintf(text, sizeof text, "%.2f us", ns / 1e3);
  else std::snprintf(text, sizeof text, "%.0f ns", ns);
  return text;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, share < 0.0995 ? "%.1f%%" : "%.0f%%", 100 * share);
  return text;
}

std::string human_bytes(double bytes) {
  char text[32];
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 4) bytes /= 1024, ++unit;
  std::snprintf(text, sizeof text, bytes == static_cast<double>(static_cast<long>(bytes)) ? "%.0f %s" : "%.1f %s",
                bytes, kUnits[unit]);
  return text;
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

std::string ranks_text(const std::vector<int>& ranks) {
  std::string out;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    out += (out.empty() ? "" : ", ") + std::to_string(ranks[i]);
    if (last > i) out += (last == i + 1 ? ", " : "-") + std::to_string(ranks[last]);
    i = last;
  }
  return out;
}

std::string ranks_named(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + ranks_text(ranks);
}

std::string shell_word(const std::string& word) {
  if (!word.empty() &&
      word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./%+,:=@") ==
          std::string::npos)
    return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string shown_path(const std::string& path) {
  std::error_code error;
  const std::string here = std::filesystem::current_path(error).string() + "/";
  return shell_word(!error && path.starts_with(here) ? path.substr(here.size()) : path);
}

timespec in_timespec(double seconds) {
  const double whole = std::floor(seconds);
  return {static_cast<time_t>(whole), static_cast<long>(1e9 * (seconds - whole))};
}

}  // namespace latecomer::cli

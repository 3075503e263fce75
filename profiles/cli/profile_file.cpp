// SPDX-License-Identifier: BSD-3-Clause
// Reading a profile.
#include "profiles/cli/profile_file.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>

#include "profiles/cli/commands.hpp"
#include "profiles/cli/symbols.hpp"

namespace latecomer::cli {
namespace {

std::string base_name(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

void keep_few_rows(Json& site) {
  site["rows"] = site["ranks"].size();
  site["last_total"] = 0.0;
  auto& rows = site["ranks"].get_ref<Json::array_t&>();  // from here on no new keys: they would move it
  double total = 0;
  std::vector<std::pair<double, std::size_t>> last, latest;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    total += rows[i]["last_count"].get<double>();
    last.emplace_back(-rows[i]["last_count"].get<double>(), i);
    latest.emplace_back(-rows[i]["mean_offset_ns"].get<double>(), i);
  }
  site["last_total"] = total;
  if (rows.size() <= 2 * kRowsKept) return;
  std::set<std::size_t> chosen;
  for (auto* order : {&last, &latest}) {
    std::partial_sort(order->begin(), order->begin() + kRowsKept, order->end());
    for (std::size_t i = 0; i < kRowsKept; ++i) chosen.insert((*order)[i].second);
  }
  Json::array_t kept;
  for (const std::size_t i : chosen) {
    rows[i].erase("histogram");
    kept.push_back(std::move(rows[i]));
  }
  rows = std::move(kept);
}

}  // namespace

Json load_profile(const std::string& path, bool all_rows) {
  std::ifstream in(path);
  if (!in) throw BadUsage("cannot read '" + path + "'" + (std::ifstream(path + ".parts").good() ? " (its job was cut short: latecomer recover " + path + ")" : ""));
  const Json::parser_callback_t prune = [](int depth, Json::parse_event_t event, Json& value) {
    // A site is an object in an array in the profile; other objects at that depth have no rows.
    if (event == Json::parse_event_t::object_end && depth == 2 && value.contains("ranks") && value["ranks"].is_array()) keep_few_rows(value);
    return true;
  };
  Json profile = Json::parse(in, all_rows ? Json::parser_callback_t(nullptr) : prune, false);
  if (profile.is_discarded() || !profile.is_object() || profile.value("format", "") != "latecomer-profile")
    throw BadUsage("'" + path + "' is not a latecomer profile");
  if (profile.value("version", 0) != 1) throw BadUsage("'" + path + "' has version " + profile["version"].dump() + ", this latecomer reads 1");
  return profile;
}

void resolve_names(Json& profile, double patience_s) {
  using Clock = std::chrono::steady_clock;
  Symbols symbols;
  const auto step = std::chrono::duration<double>(patience_s);
  auto next = Clock::now() + step;
  std::size_t done = 0;
  for (Json& site : profile["sites"]) {
    for (Json& frame : site["frames"]) {
      if (!frame["function"].is_null()) continue;
      const std::string offset = frame["offset"].get<std::string>(), module = frame["module"].get<std::string>();
      if (Clock::now() >= next) {
        std::cerr << "latecomer: resolving names: " << done << " of " << profile["sites"].size() << " sites, now in " << base_name(module) << "\n";
        next = Clock::now() + step;
      }
      const auto name = symbols.resolve(module, frame["build_id"].get<std::string>(), std::strtoull(offset.c_str(), nullptr, 16));
      if (!name.function.empty()) frame["function"] = name.function;
      if (!name.file.empty()) frame["file"] = name.file, frame["line"] = name.line;
    }
    ++done;
  }
}

std::string place(const Json& frame) {
  std::string out = frame["function"].is_null() ? base_name(frame["module"].get<std::string>()) + "+" + frame["offset"].get<std::string>()
                                                : frame["function"].get<std::string>();
  if (!frame["file"].is_null()) out += " (" + base_name(frame["file"].get<std::string>()) + ":" + std::to_string(frame["line"].get<int>()) + ")";
  else if (!frame["function"].is_null()) out += " (" + base_name(frame["module"].get<std::string>()) + ")";
  return out;
}

std::string row_name(const Json& row) {
  const int first = row["rank"].get<int>(), ranks = row.value("ranks", 1);
  return ranks > 1 ? std::to_string(first) + "-" + std::to_string(first + ranks - 1) : std::to_string(first);
}

}  // namespace latecomer::cli

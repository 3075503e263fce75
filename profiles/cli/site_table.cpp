// SPDX-License-Identifier: BSD-3-Clause
// Prints one line per call site.
#include "profiles/cli/site_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "profiles/cli/common.hpp"
#include "profiles/cli/profile_file.hpp"

namespace latecomer::cli {

std::string last_ranks(const Json& site, std::size_t most) {
  std::vector<std::pair<double, std::string>> rows;
  double calls = site.value("last_total", 0.0);
  for (const Json& r : site["ranks"]) {
    rows.emplace_back(r["last_count"].get<double>(), row_name(r));
    if (!site.contains("last_total")) calls += rows.back().first;
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string out;
  for (std::size_t i = 0; i < std::min(most, rows.size()) && rows[i].first > 0; ++i) {
    char text[64];
    std::snprintf(text, sizeof text, "%s%s (%.0f%%)", i ? ", " : "", rows[i].second.c_str(),
                  100 * rows[i].first / calls);
    out += text;
  }
  return out.empty() ? "-" : out;
}

void print_sites(const Json& profile, int most) {
  std::printf("%-19s %5s %9s %10s %12s %7s %12s %12s  %-22s %s\n", "collective", "ranks", "calls", "bytes", "wait, sum",
              "share", "wait, mean", "after last", "comes last", "called from");
  int joined = 0, alone = 0, shown = 0;
  for (const Json& s : profile["sites"]) {
    if (s["comm_size"].get<int>() == 1 && ++alone) continue;
    if (shown++ >= most) break;
    if (s["calls"].get<std::uint64_t>() == 0) ++joined;
    const bool seen = s["patterns"].get<std::uint64_t>() > 0;
    const auto time = [&](double ns) { return seen ? human_time(ns) : std::string("-"); };
    std::printf("%-19s %5d %9llu %10s %12s %6.1f%% %12s %12s  %-22s %s\n", s["op"].get<std::string>().c_str(),
                s["comm_size"].get<int>(), static_cast<unsigned long long>(s["calls"].get<std::uint64_t>()),
                s["bytes"].is_null() ? "-" : human_bytes(std::round(s["bytes"]["mean"].get<double>())).c_str(),
                time(total_wait(s)).c_str(), 100 * total_wait(s) / std::max(1.0, rank_time(profile)),
                time(s["imbalance_ns"]["mean"]).c_str(), time(s["after_last_ns"]["mean"]).c_str(),
                last_ranks(s, 2).c_str(), place(s["frames"][0]).c_str());
  }
  std::printf(
      "\nwait, sum: time of all ranks from their arrival to that of the rank that they wait for; share: of "
      "rank-time.\nwait, mean: from the first arrival to the last; after last: from the last arrival to the last "
      "exit.\n");
  if (joined) std::printf("Calls 0: other ranks reach the same operation from another line, which counts the calls.\n");
  if (alone) std::printf("The table omits %d sites on communicators of one rank.\n", alone);
}

}  // namespace latecomer::cli

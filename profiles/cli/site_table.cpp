// SPDX-License-Identifier: BSD-3-Clause
// Prints one line per call site.
#include "profiles/cli/site_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "profiles/cli/callers.hpp"
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

namespace {

/// The callers that the table shows of a site.
constexpr std::size_t kCallersShown = 3;

void print_callers(const std::vector<CallerNode>& callers, double all_time) {
  const std::size_t shown = callers.size() == kCallersShown + 1 ? callers.size() : kCallersShown;
  double calls = 0, waited = 0;
  for (std::size_t i = 0; i < callers.size(); ++i) {
    const Json& f = callers[i].figures;
    if (i >= shown) {
      calls += f["calls"].get<double>(), waited += f["waited_ns"].get<double>();
      continue;
    }
    const bool seen = f["patterns"].get<double>() > 0;
    const auto time = [&](const char* key) { return seen ? human_time(f[key]) : std::string("-"); };
    std::printf("%-19s %5s %9.0f %10s %12s %6.1f%% %12s %12s  %-22s   < %s\n", "", "", f["calls"].get<double>(),
                f["bytes"].is_null() ? "-" : human_bytes(std::round(f["bytes"]["mean"].get<double>())).c_str(),
                time("waited_ns").c_str(), 100 * f["waited_ns"].get<double>() / all_time,
                time("mean_imbalance_ns").c_str(), time("mean_after_last_ns").c_str(), last_ranks(f, 2).c_str(),
                place_of(callers[i]).c_str());
  }
  if (callers.size() > shown)
    std::printf("%-19s %5s %9.0f %10s %12s %6.1f%% %12s %12s  %-22s   < %zu more callers\n", "", "", calls, "",
                human_time(waited).c_str(), 100 * waited / all_time, "", "", "", callers.size() - shown);
}

}  // namespace

void print_sites(const Json& profile, int most) {
  std::printf("%-19s %5s %9s %10s %12s %7s %12s %12s  %-22s %s\n", "collective", "ranks", "calls", "bytes", "wait, sum",
              "share", "wait, mean", "after last", "comes last", "called from");
  int joined = 0, alone = 0, shown = 0, wrappers = 0;
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
    const auto tree = callers_of(s);
    if (const auto& callers = served(tree); serves_many(callers))
      ++wrappers, print_callers(callers, std::max(1.0, rank_time(profile)));
  }
  std::printf(
      "\nwait, sum: time of all ranks from their arrival to that of the rank that they wait for; share: of "
      "rank-time.\nwait, mean: from the first arrival to the last; after last: from the last arrival to the last "
      "exit.\n");
  if (wrappers) std::printf("<: the callers of a line that serves several; they are parts of its row.\n");
  if (joined) std::printf("Calls 0: other ranks reach the same operation from another line, which counts the calls.\n");
  if (alone) std::printf("The table omits %d sites on communicators of one rank.\n", alone);
}

}  // namespace latecomer::cli

// SPDX-License-Identifier: BSD-3-Clause
// Prints one line per call site.
#include "profiles/render/site_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "profiles/base/text.hpp"
#include "profiles/format/reader.hpp"
#include "profiles/render/callers.hpp"
#include "profiles/symbols/names.hpp"

namespace latecomer::cli {

namespace {

/// The callers that the table shows of a site.
constexpr std::size_t kCallersShown = 3;

void print_row(const analysis::Calls& c, const char* op, const std::string& ranks, double all_time,
               const std::string& where) {
  const auto time = [&](double ns) { return c.patterns > 0 ? human_time(ns) : std::string("-"); };
  std::printf("%-19s %5s %9.0f %10s %12s %6.1f%% %12s %12s  %-22s %s\n", op, ranks.c_str(), c.calls,
              c.bytes ? human_bytes(std::round(*c.bytes)).c_str() : "-", time(c.waited).c_str(),
              100 * c.waited / all_time, time(c.imbalance).c_str(), time(c.after_last).c_str(), c.last_ranks(2).c_str(),
              where.c_str());
}

void print_callers(const std::vector<CallerNode>& callers, double all_time) {
  const std::size_t shown = callers.size() == kCallersShown + 1 ? callers.size() : kCallersShown;
  double calls = 0, waited = 0;
  for (std::size_t i = 0; i < callers.size(); ++i) {
    const analysis::Calls& f = callers[i].figures;
    if (i >= shown) calls += f.calls, waited += f.waited;
    else print_row(f, "", "", all_time, "  < " + place_of(callers[i]));
  }
  if (callers.size() > shown)
    std::printf("%-19s %5s %9.0f %10s %12s %6.1f%% %12s %12s  %-22s   < %zu more callers\n", "", "", calls, "",
                human_time(waited).c_str(), 100 * waited / all_time, "", "", "", callers.size() - shown);
}

}  // namespace

void print_sites(const Profile& profile, int most) {
  std::printf("%-19s %5s %9s %10s %12s %7s %12s %12s  %-22s %s\n", "collective", "ranks", "calls", "bytes", "wait, sum",
              "share", "wait, mean", "after last", "comes last", "called from");
  const double all_time = std::max(1.0, rank_time(profile.json));
  int joined = 0, alone = 0, shown = 0, wrappers = 0;
  for (const Site& s : profile.sites) {
    if (s.comm_size == 1 && ++alone) continue;
    if (shown++ >= most) break;
    if (s.calls == 0) ++joined;
    print_row(s, s.op.c_str(), std::to_string(static_cast<long>(s.comm_size)), all_time, place(s["frames"][0]));
    const auto tree = callers_of(s);
    if (const auto& callers = served(tree); serves_many(callers)) ++wrappers, print_callers(callers, all_time);
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

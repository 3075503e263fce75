// SPDX-License-Identifier: BSD-3-Clause
// Prints one line per group of ranks that called collectives together.
#include "profiles/render/communicator_table.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "profiles/base/text.hpp"
#include "profiles/format/reader.hpp"

namespace latecomer::cli {

void print_communicators(const Json& profile, int most) {
  std::vector<const Json*> rows;
  const Json all = profile.value("communicators", Json::array());
  for (const Json& row : all)
    if (row["comm_size"] != 1) rows.push_back(&row);
  if (rows.size() < 2) return;
  const auto waited = [](const Json* row) { return (*row)["waited_ns"].get<double>(); };
  std::ranges::stable_sort(rows, [&](const Json* a, const Json* b) { return waited(a) > waited(b); });
  std::printf("\ncommunicators, longest wait first; those with the same members count as one\n");
  std::printf("%5s %9s %12s %7s %12s %12s  %s\n", "ranks", "calls", "wait, sum", "share", "wait, mean", "after last",
              "members");
  for (std::size_t i = 0; i < std::min(rows.size(), static_cast<std::size_t>(std::max(most, 0))); ++i) {
    const Json& row = *rows[i];
    const int ranks = row["comm_size"];
    std::printf("%5s %9llu %12s %6.1f%% %12s %12s  %s\n", ranks ? std::to_string(ranks).c_str() : "-",
                static_cast<unsigned long long>(row["calls"].get<std::uint64_t>()), human_time(waited(rows[i])).c_str(),
                100 * waited(rows[i]) / std::max(1.0, rank_time(profile)), human_time(row["imbalance_ns"]).c_str(),
                human_time(row["after_last_ns"]).c_str(),
                ranks ? row["members"].get<std::string>().c_str() : "(all further communicators)");
  }
}

}  // namespace latecomer::cli

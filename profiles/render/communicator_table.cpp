// SPDX-License-Identifier: BSD-3-Clause
// Prints one line per group of ranks that called collectives together.
#include "profiles/render/communicator_table.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "profiles/base/text.hpp"
#include "profiles/format/reader.hpp"

namespace latecomer::cli {

void print_communicators(const Profile& profile, int most) {
  std::vector<analysis::Communicator> rows;
  std::ranges::copy_if(profile.communicators, std::back_inserter(rows), [](const auto& row) { return row.ranks != 1; });
  if (rows.size() < 2) return;
  std::ranges::stable_sort(rows, std::greater(), &analysis::Communicator::waited);
  std::printf("\ncommunicators, longest wait first; those with the same members count as one\n");
  std::printf("%5s %9s %12s %7s %12s %12s  %s\n", "ranks", "calls", "wait, sum", "share", "wait, mean", "after last",
              "members");
  for (std::size_t i = 0; i < std::min(rows.size(), static_cast<std::size_t>(std::max(most, 0))); ++i) {
    const analysis::Communicator& row = rows[i];
    std::printf("%5s %9.0f %12s %6.1f%% %12s %12s  %s\n", row.ranks ? std::to_string(row.ranks).c_str() : "-",
                row.calls, human_time(row.waited).c_str(), 100 * row.waited / profile.job.rank_time(),
                human_time(row.imbalance).c_str(), human_time(row.after_last).c_str(),
                row.ranks ? row.members.c_str() : "(all further communicators)");
  }
}

}  // namespace latecomer::cli

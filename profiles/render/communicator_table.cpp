// SPDX-License-Identifier: BSD-3-Clause
// Prints one line per group of ranks that called collectives together.
#include "profiles/render/communicator_table.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>

#include "profiles/base/text.hpp"

namespace latecomer::profiles {

std::vector<analysis::Communicator> communicators_of(const Profile& profile) {
  std::vector<analysis::Communicator> out;
  std::ranges::copy_if(profile.communicators, std::back_inserter(out), [](const auto& row) { return row.ranks != 1; });
  std::ranges::stable_sort(out, std::greater(), &analysis::Communicator::waited);
  return out;
}

std::string members_of(const analysis::Communicator& c) { return c.ranks ? c.members : "(all further communicators)"; }

void print_communicators(const Profile& profile, int most) {
  const std::vector<analysis::Communicator> rows = communicators_of(profile);
  if (rows.size() < 2) return;
  std::printf("\ncommunicators, longest wait first; those with the same members count as one\n");
  constexpr int kWidths[] = {5, 9, 12, 7, 12, 12};
  for (std::size_t k = 0; k < std::size(kWidths); ++k)
    std::printf("%*s ", kWidths[k], std::string(kCommunicatorTitles[k]).c_str());
  std::printf(" %s\n", std::string(kCommunicatorTitles[std::size(kWidths)]).c_str());
  for (std::size_t i = 0; i < std::min(rows.size(), static_cast<std::size_t>(std::max(most, 0))); ++i) {
    const analysis::Communicator& c = rows[i];
    std::printf("%5s %9.0f %12s %7s %12s %12s  %s\n", c.ranks ? std::to_string(c.ranks).c_str() : "-", c.calls,
                human_time(c.waited).c_str(), percent(c.share, "-").c_str(), human_time(c.imbalance).c_str(),
                human_time(c.after_last).c_str(), members_of(c).c_str());
  }
}

}  // namespace latecomer::profiles

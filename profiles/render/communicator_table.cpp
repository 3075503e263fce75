// SPDX-License-Identifier: BSD-3-Clause
// Prints one line per group of ranks that called collectives together.
#include "profiles/render/communicator_table.hpp"

#include <algorithm>
#include <cstdio>

#include "profiles/base/text.hpp"

namespace latecomer::cli {

std::vector<Communicator> communicators_of(const Profile& profile) {
  std::vector<Communicator> out;
  const double all_time = std::max(1.0, rank_time(profile.json));
  if (const auto rows = profile.json.find("communicators"); rows != profile.json.end())
    for (const Json& row : *rows) {
      Communicator c;
      c.ranks = row["comm_size"], c.members = row["members"], c.calls = row["calls"], c.waited = row["waited_ns"];
      c.imbalance = row["imbalance_ns"], c.after_last = row["after_last_ns"], c.share = c.waited / all_time;
      if (c.ranks != 1) out.push_back(std::move(c));
    }
  std::ranges::stable_sort(out, std::ranges::greater(), &Communicator::waited);
  return out;
}

std::string members_of(const Communicator& c) { return c.ranks ? c.members : "(all further communicators)"; }

void print_communicators(const Profile& profile, int most) {
  const std::vector<Communicator> rows = communicators_of(profile);
  if (rows.size() < 2) return;
  std::printf("\ncommunicators, longest wait first; those with the same members count as one\n");
  constexpr int kWidths[] = {5, 9, 12, 7, 12, 12};
  for (std::size_t k = 0; k < std::size(kWidths); ++k)
    std::printf("%*s ", kWidths[k], std::string(kCommunicatorTitles[k]).c_str());
  std::printf(" %s\n", std::string(kCommunicatorTitles[std::size(kWidths)]).c_str());
  for (std::size_t i = 0; i < std::min(rows.size(), static_cast<std::size_t>(std::max(most, 0))); ++i) {
    const Communicator& c = rows[i];
    std::printf("%5s %9.0f %12s %6.1f%% %12s %12s  %s\n", c.ranks ? std::to_string(c.ranks).c_str() : "-", c.calls,
                human_time(c.waited).c_str(), 100 * c.share, human_time(c.imbalance).c_str(),
                human_time(c.after_last).c_str(), members_of(c).c_str());
  }
}

}  // namespace latecomer::cli

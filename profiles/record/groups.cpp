// SPDX-License-Identifier: BSD-3-Clause
// Finds the group of a communicator's members, and writes members as text.
#include "profiles/record/groups.hpp"

#include <algorithm>

#include "core/base/text.hpp"

namespace latecomer::profiles {

std::uint32_t Groups::of(std::span<const core::Rank> ranks) {
  const auto is = [&](std::uint32_t index) { return std::ranges::equal(all_[index].ranks, ranks); };
  if (latest_ != kOther && is(latest_)) return latest_;
  std::uint64_t hash = ranks.size();
  for (const core::Rank r : ranks) hash = core::mix64(hash ^ static_cast<std::uint64_t>(r));
  for (auto [at, end] = by_hash_.equal_range(hash); at != end; ++at)
    if (is(at->second)) return latest_ = at->second;
  if (members_ + ranks.size() > kMostMembers) return kOther;
  members_ += ranks.size();
  latest_ = static_cast<std::uint32_t>(all_.size());
  all_.emplace_back().ranks.assign(ranks.begin(), ranks.end());
  by_hash_.emplace(hash, latest_);
  return latest_;
}

std::string ranks_text(std::vector<core::Rank> ranks) {
  constexpr int kMostRuns = 16;  // derived: a line of a terminal holds fewer
  std::ranges::sort(ranks);
  std::string out;
  int runs = 0;
  for (std::size_t i = 0; i < ranks.size();) {
    if (!out.empty()) out += ", ";
    if (runs++ == kMostRuns) return out + "...";
    const core::Rank step = i + 1 < ranks.size() ? ranks[i + 1] - ranks[i] : 0;
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] - ranks[end - 1] == step) ++end;
    // Two ranks make a run only if they are neighbours.
    if (end - i == 2 && step != 1) end = i + 1;
    out += std::to_string(ranks[i]);
    if (end - i > 1) out += "-" + std::to_string(ranks[end - 1]);
    if (end - i > 1 && step != 1) out += ":" + std::to_string(step);
    i = end;
  }
  return out;
}

}  // namespace latecomer::profiles

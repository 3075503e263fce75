// SPDX-License-Identifier: BSD-3-Clause
// Generator `plain`: the corrected pseudocode as it stands. It also skips the rounds in which nothing can happen, but
// shares no code with the other generators, which are tested against it. Source: Proficz and Ocetkiewicz 2021,
// section 4.6 and listing 2.
#include <algorithm>
#include <vector>

#include "profiles/papers/generators/generators.hpp"

namespace latecomer::core::clairvoyant {

void plan_plain(const Problem& problem, const Emit& emit) {
  enum : char { kSent, kHeld, kPending };
  const int ranks = problem.ranks(), segments = problem.segments;
  const Nanoseconds d = problem.round_ns;
  std::vector<std::vector<char>> state(static_cast<std::size_t>(ranks),
                                       std::vector<char>(static_cast<std::size_t>(segments), kHeld));
  const auto at = [&](Rank p, int j) -> char& {
    return state[static_cast<std::size_t>(p)][static_cast<std::size_t>(j)];
  };
  std::vector<Nanoseconds> available(problem.arrivals.begin(), problem.arrivals.end());
  std::vector<char> took_part(static_cast<std::size_t>(ranks), 0), left(took_part), has_sent(took_part);
  const auto time = [&](Rank p) -> Nanoseconds& { return available[static_cast<std::size_t>(p)]; };
  std::int64_t round = 0;
  for (;;) {
    bool done = true;
    for (Rank p = 0; p < ranks; ++p) {
      if (p == problem.root) continue;
      const auto& mine = state[static_cast<std::size_t>(p)];
      const bool holds = std::ranges::any_of(mine, [](char s) { return s == kHeld; });
      if (!holds && took_part[static_cast<std::size_t>(p)]) left[static_cast<std::size_t>(p)] = 1;
      done = done && !holds;
    }
    if (done) return;

    std::vector<Rank> group;
    const auto gather = [&] {
      Nanoseconds first = INT64_MAX;
      for (Rank p = 0; p < ranks; ++p)
        if (!left[static_cast<std::size_t>(p)]) first = std::min(first, time(p));
      group.clear();
      for (Rank p = 0; p < ranks; ++p)
        if (!left[static_cast<std::size_t>(p)] && time(p) < first + d) group.push_back(p);
      std::ranges::stable_sort(group, [&](Rank x, Rank y) { return time(x) < time(y); });
    };
    gather();
    std::fill(has_sent.begin(), has_sent.end(), 0);
    const Rank sink = std::ranges::find(group, problem.root) != group.end() ? problem.root : group.front();
    std::vector<Message> sent;
    const auto serve = [&](Rank p) {
      for (int j = 0; j < segments; ++j) {
        if (p != sink && at(p, j) != kHeld) continue;
        for (const Rank z : group) {
          if (z == p || has_sent[static_cast<std::size_t>(z)] || at(z, j) != kHeld) continue;
          sent.push_back({round, z, p, j});
          has_sent[static_cast<std::size_t>(z)] = 1;
          at(z, j) = kSent;
          at(p, j) = kPending;
          return;
        }
      }
    };
    serve(sink);
    for (const Rank p : group)
      if (p != sink) serve(p);

    for (auto& mine : state) std::replace(mine.begin(), mine.end(), char{kPending}, char{kHeld});
    if (!sent.empty()) emit(sent);
    std::int64_t rounds = 1;
    if (sent.empty()) {  // nothing will happen before the next process is in the group
      Nanoseconds next = INT64_MAX;
      for (Rank p = 0; p < ranks; ++p)
        if (!took_part[static_cast<std::size_t>(p)] && std::ranges::find(group, p) == group.end())
          next = std::min(next, time(p));
      if (next != INT64_MAX) rounds = std::max<std::int64_t>(1, (next - time(group.front())) / d);
    }
    for (const Rank p : group) {
      time(p) += rounds * d;
      took_part[static_cast<std::size_t>(p)] = 1;
    }
    round += rounds;
  }
}

}  // namespace latecomer::core::clairvoyant

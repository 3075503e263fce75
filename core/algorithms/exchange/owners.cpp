// SPDX-License-Identifier: BSD-3-Clause
// Owners and collectors, by closed forms of the time that ports need.
#include "core/algorithms/exchange/owners.hpp"

#include <algorithm>
#include <cmath>

namespace latecomer::core::exchange {
namespace {

/// Ranks that arrive at least `before` before the last, without the sink.
std::vector<Rank> early(const Problem& problem, Nanoseconds last, Nanoseconds before) {
  std::vector<Rank> out;
  for (Rank r = 0; r < problem.ranks(); ++r)
    if (problem.arrivals[static_cast<std::size_t>(r)] <= last - before && r != problem.sink) out.push_back(r);
  return out;
}

/// Time after the last arrival, by ports: every contribution to one of `owners` segments, or those of all ranks that
/// own nothing, then the final vector. `earlier`: the latest owner arrives so much before the last rank.
double after_last(const Problem& problem, std::size_t owners, Nanoseconds earlier) {
  const auto vector = static_cast<double>(problem.vector_ns()), own = static_cast<double>(owners),
             ranks = static_cast<double>(problem.ranks()), each = vector / own;
  return vector + std::max((ranks - 1) * each - static_cast<double>(earlier), (ranks - own) * each);
}

}  // namespace

std::vector<Rank> owners_for(const Problem& problem) {
  const Nanoseconds last = *std::max_element(problem.arrivals.begin(), problem.arrivals.end());
  const Nanoseconds vector = problem.vector_ns(), message = problem.network.step_ns(1);
  // An owner takes in a contribution of every rank, which for short vectors takes longer than the vector.
  const Nanoseconds everybody = problem.ranks() * message;
  std::vector<Rank> best;
  double least = 0;
  for (const Nanoseconds before : {Nanoseconds{0}, message, vector / 2, vector, 2 * vector, everybody / 16,
                                   everybody / 8, everybody / 4, everybody / 2, everybody}) {
    std::vector<Rank> owners = early(problem, last, before);
    if (owners.empty()) continue;
    // Partial sums that wait for their neighbours lie at owners: with fewer of them they could be many times the
    // vector.
    if (problem.ordered && 2 * static_cast<int>(owners.size()) < problem.ranks()) continue;
    Nanoseconds latest = 0;
    for (const Rank r : owners) latest = std::max(latest, problem.arrivals[static_cast<std::size_t>(r)]);
    const double after = after_last(problem, owners.size(), last - latest);
    if (best.empty() || after < least) least = after, best = std::move(owners);
  }
  return best;
}

int collectors_of(const Problem& problem) {
  // The contributions to one collector take about as long as the sums of all collectors: the root of the number of late
  // ranks. One more collector costs one more message per segment. Model, time over the bound: 200 ranks, hdr with
  // overhead, 32 MiB, random over 5 ms: two collectors 1.57, four 1.23. 1,024 ranks, 4 MiB, hdr, a quarter late: 16
  // collectors 1.10, 21 collectors 1.11.
  constexpr double kOfRoot = 1.1, kFew = 8;
  constexpr int kRanks = 48;
  const int ranks = problem.ranks();
  if (problem.source >= 0 || problem.ordered) return 1;
  const Nanoseconds last = *std::max_element(problem.arrivals.begin(), problem.arrivals.end());
  // Contributions to a segment that cannot have been sent when the last rank comes.
  double late = 0;
  for (const Nanoseconds t : problem.arrivals)
    late += std::max(
        0.0, 1 - static_cast<double>(last - t) / static_cast<double>(std::max<Nanoseconds>(1, problem.vector_ns())));
  const double idle = late * (1 - late / ranks);
  const int most = std::max(1, std::min(ranks / kRanks, static_cast<int>(problem.owners.size())));
  return idle < kFew ? 1 : std::clamp(static_cast<int>(kOfRoot * std::sqrt(idle)), 1, most);
}

}  // namespace latecomer::core::exchange

// SPDX-License-Identifier: BSD-3-Clause
// Compares the shares of the parts of the ranks' times.
#include "profiles/analysis/whole_run.hpp"

#include <algorithm>

namespace latecomer::profiles::analysis {

std::optional<SharesOfPart> shares_of_part(const std::vector<RankFigures>& ranks, const RankFigures& rank,
                                           double ProcessTimes::*part) {
  double sum = 0, count = 0;
  for (const RankFigures& other : ranks)
    if (&other != &rank && other.wall > 0) {
      sum += other.times.*part / other.wall;
      ++count;
    }
  if (rank.wall <= 0 || count == 0) return {};
  return SharesOfPart{rank.times.*part / rank.wall, sum / count};
}

std::optional<LongerPart> longer_part(const std::vector<RankFigures>& ranks, const RankFigures& rank,
                                      double ProcessTimes::*without, double least) {
  const auto longer = [&](double ProcessTimes::*part) {
    const auto shares = shares_of_part(ranks, rank, part);
    return shares->mine - shares->others;
  };
  std::optional<LongerPart> found;
  for (std::size_t k = 0; k < kPartsBetween; ++k) {
    const auto part = kTimeColumns[k].value;
    if (part == without) continue;
    const auto shares = shares_of_part(ranks, rank, part);
    if (!shares) return {};
    const auto [mine, others] = *shares;
    const double error = part == &ProcessTimes::messages ? 2 * rank.messages_error / rank.wall : 0;
    if (mine - others >= least + error && (!found || mine - others > found->mine - found->others))
      found = LongerPart{k, mine, others};
  }
  if (found && kTimeColumns[found->part].value == &ProcessTimes::blocked)
    found->sleeps_for =
        sleeps_for(found->mine - found->others, longer(&ProcessTimes::threads), longer(&ProcessTimes::threads_in_mpi));
  return found;
}

}  // namespace latecomer::profiles::analysis

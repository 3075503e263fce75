// SPDX-License-Identifier: BSD-3-Clause
// Compares the shares of the parts of the ranks' times.
#include "profiles/analysis/whole_run.hpp"

namespace latecomer::profiles::analysis {

std::optional<LongerPart> longer_part(const std::vector<RankFigures>& ranks, const RankFigures& rank,
                                      double ProcessTimes::*without, double least) {
  if (rank.wall <= 0) return {};
  std::optional<LongerPart> found;
  for (std::size_t k = 0; k < kPartsBetween; ++k) {
    const auto part = kTimeColumns[k].value;
    if (part == without) continue;
    double others = 0, count = 0;
    for (const RankFigures& other : ranks)
      if (&other != &rank && other.wall > 0) {
        others += other.times.*part / other.wall;
        ++count;
      }
    if (count == 0) return {};
    others /= count;
    const double mine = rank.times.*part / rank.wall;
    const double error = part == &ProcessTimes::messages ? 2 * rank.messages_error / rank.wall : 0;
    if (mine - others >= least + error && (!found || mine - others > found->mine - found->others))
      found = LongerPart{k, mine, others};
  }
  return found;
}

}  // namespace latecomer::profiles::analysis

// SPDX-License-Identifier: BSD-3-Clause
// Finds the part of its time by which a rank takes longer than the others over the whole run. These times are measured,
// not sampled. It writes no sentences.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "profiles/analysis/analysis.hpp"

namespace latecomer::profiles::analysis {

struct SharesOfPart {
  double mine = 0, others = 0;  ///< share of a part in the rank's time; mean of the shares in the others' times
};
/// Empty: the times of the rank or of all others are unknown.
std::optional<SharesOfPart> shares_of_part(const std::vector<RankFigures>& ranks, const RankFigures& rank,
                                           double ProcessTimes::*part);

struct LongerPart {
  std::size_t part = 0;         ///< in kTimeColumns
  double mine = 0, others = 0;  ///< as in SharesOfPart
  SleepsFor sleeps_for = SleepsFor::unknown;
};

/// The part of the rank's time whose share exceeds the mean share of the other ranks most, by at least `least`.
/// `without`: a part to leave out. Empty: no part exceeds it so much, or the times of the rank or of all others are
/// unknown.
std::optional<LongerPart> longer_part(const std::vector<RankFigures>& ranks, const RankFigures& rank,
                                      double ProcessTimes::*without, double least);

}  // namespace latecomer::profiles::analysis

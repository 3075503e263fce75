// SPDX-License-Identifier: BSD-3-Clause
// Finds what a rank does longer than the others over the whole run. The times of all processes are known without a
// sample. It writes no sentences.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "profiles/analysis/analysis.hpp"

namespace latecomer::analysis {

struct LongerPart {
  std::size_t part = 0;         ///< in kTimeColumns
  double mine = 0, others = 0;  ///< its shares of the time of the rank, and of the others as a mean
};

/// The part of the rank's time that exceeds the mean of the other ranks most, by at least that share of the time.
/// `without`: a part that is no answer. Empty: no part does, or the times of the rank or of all others are not known.
std::optional<LongerPart> longer_part(const std::vector<Rank>& ranks, const Rank& rank, double Times::*without,
                                      double least);

}  // namespace latecomer::analysis

// SPDX-License-Identifier: BSD-3-Clause
// The run time of ranks divided into parts that add up to it, as a stacked bar shows them.
#pragma once

#include <array>

#include "profiles/analysis/analysis.hpp"

namespace latecomer::profiles::analysis {

struct TimePart {
  std::string_view title, meaning;
};
inline constexpr TimePart kWaits{"waits", "Inside collectives, before the awaited rank arrives"};
inline constexpr TimePart kAfterLast{
    "after last", "The rest of the time inside blocking collectives, after the awaited rank has arrived"};
inline constexpr TimePart kRest{"rest", "The rest of the run time, of which nothing is known"};
/// kTimeColumns but `collectives`, then the three parts above.
inline constexpr std::size_t kTimeParts = std::size(kTimeColumns) + 2;

std::array<TimePart, kTimeParts> time_parts();
/// The share of each part. The shares add up to 1, or are all 0 if the run time is 0. Waits are at most the time inside
/// collectives.
std::array<double, kTimeParts> time_shares(const Figures& figures);

}  // namespace latecomer::profiles::analysis

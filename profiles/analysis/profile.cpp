// SPDX-License-Identifier: BSD-3-Clause
// Quantiles and sums of a profile's histograms.
#include "profiles/analysis/profile.hpp"

#include <algorithm>
#include <numeric>

namespace latecomer::profiles::analysis {

std::pair<double, double> HistogramFigures::bounds(double quantile) const {
  double left = quantile * std::accumulate(counts.begin(), counts.end(), 0.0);
  std::size_t i = 0;
  while (i + 1 < counts.size() && left > counts[i]) left -= counts[i++];
  if (i + 1 >= edges.size()) return {0, 0};
  return {std::min(edges[i], max), std::min(edges[i + 1], max)};
}

double HistogramFigures::sum() const { return mean * std::accumulate(counts.begin(), counts.end(), 0.0); }

}  // namespace latecomer::profiles::analysis

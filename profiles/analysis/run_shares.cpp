// SPDX-License-Identifier: BSD-3-Clause
// Divides the time inside collectives into waits and the rest, and names the parts.
#include "profiles/analysis/run_shares.hpp"

#include <algorithm>
#include <numeric>

namespace latecomer::profiles::analysis {

std::array<TimePart, kTimeParts> time_parts() {
  std::array<TimePart, kTimeParts> out{};
  std::size_t n = 0;
  for (const TimeColumn& c : kTimeColumns)
    if (c.value != &ProcessTimes::collectives) out[n++] = {c.title, c.meaning};
  out[n] = kWaits;
  out[n + 1] = kAfterLast;
  out[n + 2] = kRest;
  return out;
}

std::array<double, kTimeParts> time_shares(const Figures& figures) {
  std::array<double, kTimeParts> out{};
  if (figures.wall <= 0) return out;
  std::size_t n = 0;
  for (const TimeColumn& c : kTimeColumns)
    if (c.value != &ProcessTimes::collectives) out[n++] = figures.times.*c.value;
  out[n] = std::min(figures.waited, figures.times.collectives);
  out[n + 1] = figures.times.collectives - out[n];
  const double known = std::accumulate(out.begin(), out.end(), 0.0);
  out[n + 2] = std::max(0.0, figures.wall - known);
  for (double& part : out) part /= std::max(figures.wall, known);
  return out;
}

}  // namespace latecomer::profiles::analysis

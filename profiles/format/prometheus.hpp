// SPDX-License-Identifier: BSD-3-Clause
// The text format of Prometheus: the figures of a running job by rank and by call site. `latecomer top` fills them from
// snapshots, and a process that leads communicators fills them from its own observations.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "profiles/record/record.hpp"

namespace latecomer::profiles {

using Labels = std::vector<std::pair<std::string, std::string>>;

struct RankMetrics {
  std::string rank, host;  ///< host "": unknown
  double waited_ns = 0, awaited_ns = 0, times_last = 0, lateness_ns = 0;
};

struct SiteMetrics {
  Labels labels;
  double calls = 0, waited_ns = 0;
  std::vector<RankMetrics> ranks;  ///< lateness after the first arrival
};

struct Metrics {
  Labels job;                      ///< labels of every sample
  double wait_share = -1;          ///< of the ranks' time; -1: unknown
  std::vector<RankMetrics> ranks;  ///< lateness after the mean arrival of the others
  std::vector<SiteMetrics> sites;
  std::vector<std::pair<Labels, double>> findings;  ///< the share of the run that each could save at most
};

/// One sample per line.
std::string prometheus_text(const Metrics& metrics);

/// The figures of the calls that a process has matched as a leader. They are those of the `sites` sites with the
/// longest waits, and of the `ranks` ranks that were awaited longest. A site has the `ranks` ranks that came last most
/// often.
Metrics metrics_of(const Contribution& leader, std::size_t sites, std::size_t ranks);

/// Sorts the rows by descending value and keeps the first `most`.
template <typename Row, typename Value>
void keep_largest(std::vector<Row>& rows, std::size_t most, Value value) {
  std::ranges::stable_sort(rows, [&](const Row& a, const Row& b) { return value(a) > value(b); });
  if (rows.size() > most) rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(most), rows.end());
}

}  // namespace latecomer::profiles

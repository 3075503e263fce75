// SPDX-License-Identifier: BSD-3-Clause
// The ranks and the hosts of a job as rows of a table: what their time went into, their waits and their lateness,
// summed over all call sites.
#pragma once

#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace latecomer::cli {

/// The parts of a process's time, with their column.
inline constexpr std::pair<const char*, const char*> kTimeParts[] = {
    {"computing_ns", "computes"}, {"kernel_ns", "kernel"}, {"runnable_ns", "no core"},    {"blocked_ns", "blocked"},
    {"messages_ns", "messages"},  {"io_ns", "files"},      {"collectives_ns", "in coll."}};

/// A rank, the ranks that share a row of the profile, or the ranks of a host.
struct TimeRow {
  long first = 0;          ///< rank
  std::string name, host;  ///< "7" or "12-14"; of a host the number of its ranks
  double ranks = 0, wall = 0, waited = 0, awaited = 0, last = 0;
  std::optional<double> late;  ///< mean time after the mean of the others; not of hosts
  double parts[std::size(kTimeParts)] = {};
  void add(const TimeRow& o);
};

/// Adds up the rows of ranks of sites.
class RankSums {
 public:
  struct SiteRow {
    double first = 0, ranks = 1, offset = 0, waited = 0, awaited = 0, last = 0;
  };
  /// `calls`: with arrival patterns.
  void add(double calls, const std::vector<SiteRow>& site);
  /// [[first rank, ranks, waited_ns, awaited_ns, times last, mean lateness in ns or null], ...]
  nlohmann::ordered_json json() const;

 private:
  struct Sum {
    double ranks = 0, waited = 0, awaited = 0, last = 0, late = 0, calls = 0;
  };
  std::map<long, Sum> sums_;
};

/// By ascending rank. The sums are the profile's `rank_sums`, or those of the rows that it holds.
std::vector<TimeRow> rank_rows(const nlohmann::ordered_json& profile);
/// By name; without ranks of an unknown host.
std::vector<TimeRow> host_rows(const std::vector<TimeRow>& ranks);

}  // namespace latecomer::cli

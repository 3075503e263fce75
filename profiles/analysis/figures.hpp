// SPDX-License-Identifier: BSD-3-Clause
// The figures of a call site, of its callers and of its ranks, as the analysis reads them from a profile.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace latecomer::profiles::analysis {

/// The sampled intervals before the calls of a site: the time from the last collective to the call, as a mean in
/// nanoseconds, and its parts.
struct IntervalFigures {
  double samples = 0;    ///< 0: the profile has none
  double stand_for = 0;  ///< intervals that the samples stand for
  double wall = 0, collectives = 0, messages = 0, io = 0, other_mpi = 0, computing = 0, kernel = 0, runnable = 0,
         blocked = 0;
  double faults = 0, preempted = 0, page_faults = 0, threads = 0, threads_in_mpi = 0;
  double counted = 0, instructions = 0, cycles = 0;  ///< processor time in which these were counted; 0: none
  /// A rank whose messages the row's rank waited for, and the mean wait in nanoseconds.
  struct Peer {
    long rank = 0;
    double waited = 0;
  };
  std::vector<Peer> peers;  ///< longest wait first, as in the profile

  /// Becomes the mean over the intervals that the samples of both stand for.
  void add(const IntervalFigures& other);
};

/// One rank at a site, or the consecutive ranks that share a row of the profile.
struct RankRow {
  long rank = 0, ranks = 1;        ///< the first rank, and their number
  double offset = 0, stddev = 0;   ///< of arrivals, from the first arrival of the call, ns
  double last = 0;                 ///< number of calls in which one of the ranks came last
  double waited = 0, awaited = 0;  ///< sums, ns
  IntervalFigures before;
  /// "7", or "12-14".
  std::string name() const { return ranks_name(rank, ranks); }
  /// "rank 7", or "the group of ranks 12-14": the subject of a sentence.
  std::string named() const { return ranks_named(rank, ranks); }
  static std::string ranks_name(long first, long ranks);
  static std::string ranks_named(long first, long ranks);
};

/// The figures that a site and each of its callers have.
struct CallFigures {
  std::string op;
  double comm_size = 0;
  double calls = 0;                      ///< calls of the whole communicator, not of each rank
  double patterns = 0;                   ///< calls with records of all ranks
  double waited = 0;                     ///< time that ranks waited, summed, ns
  std::optional<double> bytes;           ///< mean
  double imbalance = 0, after_last = 0;  ///< means, ns
  double after_last_sum = 0;             ///< sum over `patterns`, ns
  IntervalFigures before;                ///< mean over all ranks
  std::vector<RankRow> ranks;            ///< by ascending rank; in large jobs only the most important rows
  std::size_t rows = 0;                  ///< number of rows in the profile

  /// nullptr: no row holds the rank.
  const RankRow* row_of(long rank) const;
  /// The row that others waited for most; nullptr: no rows.
  const RankRow* most_awaited() const;
  /// The row that came last most often; nullptr: no row came last.
  const RankRow* most_often_last() const;
  /// The rows with the greatest mean offset.
  std::vector<const RankRow*> latest(std::size_t most) const;
  /// The ranks that came last most often, with their share of `patterns`: "3 (78%), 1 (12%)"; "-": no rank came last.
  std::string last_ranks(std::size_t most) const;
  /// The same, but "-" where nobody waited.
  std::string comes_last(std::size_t most) const { return waited > 0 ? last_ranks(most) : "-"; }
};

}  // namespace latecomer::profiles::analysis

// SPDX-License-Identifier: BSD-3-Clause
// Compares the sampled intervals of the ranks at a site, and follows a late rank's waits for messages to the ranks that
// it waited for. It writes no sentences.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "profiles/analysis/figures.hpp"

namespace latecomer::profiles::analysis {

/// The parts of an interval that may make a rank late.
enum Cause : std::size_t { computing, mpi_wait, no_core, blocked, page_faults, system_calls, io, other_mpi, kCauses };
/// Names by Cause; the last one is for time that no cause explains.
struct CauseName {
  std::string_view key, title;
};
inline constexpr std::array<CauseName, kCauses + 1> kCauseNames = {{{"computing", "computes"},
                                                                    {"mpi_wait", "messages"},
                                                                    {"off_cpu", "no core"},
                                                                    {"blocked", "blocked"},
                                                                    {"page_faults", "page faults"},
                                                                    {"system", "system calls"},
                                                                    {"io", "files"},
                                                                    {"other_mpi", "other MPI"},
                                                                    {"unexplained", "unexplained"}}};
using Shares = std::array<double, kCauses>;

/// Where a chain of waits for messages ends.
enum class ChainEnd {
  own,        ///< at a rank that is late for another reason
  transfer,   ///< the rank's peer is not late, so the messages take the time
  several,    ///< the rank waits for several ranks, or for ranks that are not known
  unsampled,  ///< too few intervals of the rank's peer were sampled
  cycle,      ///< the rank's peer stands in the chain already
};

/// What a rank waits for while it sleeps longer than the others.
enum class SleepsFor { unknown, own_threads, own_calls };
/// The arguments: how much longer the rank slept than the others, and how much longer other threads of its process used
/// processors and were inside MPI. All ranks may have threads that work beside the rank, so only the difference tells.
SleepsFor sleeps_for(double slept, double threads, double threads_in_mpi);

/// How a rank computes before a call, as multiples of the same on the ranks on time. The product of the three is that
/// of the computing times.
struct Execution {
  double instructions = 1, cycles_each = 1, time_each = 1;  ///< cycles of an instruction, and the time of a cycle
};

/// The fewest samples for which a report names a cause, because the mean of fewer samples is uncertain. For a site with
/// few calls, samples of two thirds of the calls are enough: the other calls cannot change the largest part.
inline constexpr double kFewSamples = 5;
inline double enough_samples(const CallFigures& calls) {
  return std::min(kFewSamples, std::max(1.0, std::ceil(calls.calls * 2 / 3)));
}

/// Sums of the intervals of all ranks of a site, to compare each rank with. Includes rows that a report leaves out.
class Baseline {
 public:
  Baseline() = default;
  /// `calls` holds all rows.
  explicit Baseline(const CallFigures& calls);

 private:
  friend class SiteIntervals;
  struct Sums {
    double samples = 0, intervals = 0, wall = 0, threads = 0, threads_in_mpi = 0;
    double counted = 0, instructions = 0, cycles = 0;
    Shares parts{};
    void add(const Sums& o, double sign);
  };
  static Sums sums_of(const IntervalFigures& intervals);
  Sums all_, on_time_;
  double mean_wall_ = 0;
};

/// The intervals before the calls of one site or caller. It refers to both arguments.
class SiteIntervals {
 public:
  SiteIntervals(const CallFigures& calls, const Baseline& baseline) : calls_(calls), base_(baseline) {}

  /// Nanoseconds per interval and part, of a rank and of the ranks on time. A rank is on time if its mean interval is
  /// no longer than the mean of all ranks.
  struct Compared {
    double late_ns = 0;  ///< how much longer the rank's interval is
    /// How much longer other threads of its process used processors, or were inside MPI.
    double threads_ns = 0, threads_in_mpi_ns = 0;
    Shares mine{}, others{};
    std::optional<Execution> execution{};
    double excess(std::size_t part) const { return mine[part] > others[part] ? mine[part] - others[part] : 0; }
    double all_excess() const;
    Cause largest() const;  ///< the part with the largest excess
    SleepsFor sleeps_for() const { return analysis::sleeps_for(excess(blocked), threads_ns, threads_in_mpi_ns); }
  };
  /// Empty: fewer than enough_samples() intervals were sampled.
  std::optional<Compared> compare(const RankRow& row) const;

  /// The ranks whose messages the row's rank waited for. `explained`: nanoseconds of the wait per interval that the
  /// lateness of the peer explains. The rest of the wait is the time of transfers.
  struct Peer {
    long rank = 0;
    const RankRow* row = nullptr;  ///< nullptr: the row was left out or has no samples
    double waited = 0, explained = 0;
  };
  std::vector<Peer> peers(const RankRow& row) const;

  struct Chain {
    std::vector<const RankRow*> rows;  ///< from the late rank to the end
    ChainEnd end = ChainEnd::own;
    long peer = -1;  ///< the rank that the last rank of the chain waits for, if the chain does not reach it
  };
  Chain follow(const RankRow& row) const;

  /// Divides `amount`, a time that others waited for the row's rank, among the causes of its lateness. The share of
  /// mpi_wait goes to the ranks that it waited for, if these were late. Calls note(first rank of a row, cause, amount);
  /// cause kCauses: unexplained.
  using Note = std::function<void(long first, std::size_t cause, double amount)>;
  void divide(const RankRow& row, double amount, const Note& note) const;

 private:
  void divide(const RankRow& row, double amount, double least, std::vector<const RankRow*>& path,
              const Note& note) const;

  const CallFigures& calls_;
  const Baseline& base_;
};

/// Whether the rank waits for a core because other threads of its process use the cores of the process. `cores`: the
/// number of cores that the process may use.
bool own_threads_run(const IntervalFigures& intervals, double cores);

}  // namespace latecomer::profiles::analysis

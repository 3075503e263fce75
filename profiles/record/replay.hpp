// SPDX-License-Identifier: BSD-3-Clause
// Replays recorded calls under a change, such as one rank on time, and says how long the run then takes.
//
// The model of dependencies: a rank arrives at its next call when it has left the previous one and its own interval has
// passed. It leaves a call after the arrival that it waits for (profiles/record/waiting.hpp), plus the time from that
// arrival to its exit in the record. An interval consists of the rank's own time, of waits for messages of other ranks,
// and of a rest that no change alters. A wait for messages becomes shorter when the other rank comes earlier, and never
// longer. Without a change, the replay gives the recorded times. The first interval of each rank, the set-up, begins at
// the earliest arrival of the record: no rank waits before that time.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/collective/collective.hpp"

namespace latecomer::profiles {

struct ReplayCall {
  core::Collective op = core::Collective::barrier;
  std::int32_t site = 0;
  core::Rank root = -1;
  bool blocking = true;   ///< false: the rank leaves the call at once, and its later wait is part of its interval
  std::int64_t part = 0;  ///< calls of different parts of the record do not follow each other
  std::span<const core::Rank> ranks;
  std::span<const core::Nanoseconds> arrivals, exits;  ///< [ranks]; exit -1: unknown
};

/// A call site of the record, and a rank.
using SiteRank = std::pair<std::int32_t, core::Rank>;

/// The parts of a rank's intervals, as shares.
struct IntervalShares {
  double own = 1;
  std::vector<std::pair<core::Rank, double>> waits;  ///< for messages of that rank, in the order in which they count
};

struct Change {
  enum class Kind {
    none,
    on_time,  ///< the own time of `rank` before the calls of `site` has the distribution of the other ranks'
    /// Each rank's own time is scaled so that all ranks have the same mean before the calls of a site. Calls of similar
    /// length are a group with factors of their own.
    equal_work,
    scaled,   ///< the own time of a rank before the calls of a site is multiplied by its value in `factors`
    no_wait,  ///< no rank waits in a call of `site`: an upper bound for a non-blocking call
    faster,   ///< the time after the awaited arrival is multiplied by `factor`
  } kind = Kind::none;
  std::int32_t site = -1;  ///< -1: every site
  core::Rank rank = -1;
  double factor = 1;
  bool set_up = false;  ///< `on_time` holds only before the first call of a rank
  bool later = false;   ///< `on_time` does not hold before the first call of a rank
  std::map<SiteRank, double> factors{};
};

class Replay {
 public:
  /// `ranks`: size of MPI_COMM_WORLD. `shares`: [ranks]; empty: all is own time. Time and memory: linear in the number
  /// of arrivals.
  Replay(std::vector<ReplayCall> calls, int ranks, std::vector<IntervalShares> shares = {});
  /// The time in ns from the first arrival to the last exit, summed over the parts of the record.
  double time(const Change& change = {}) const;
  /// The same by stretch: a part of the record, or, where there is one only, up to kStretches pieces of equal numbers
  /// of calls.
  std::vector<double> stretches(const Change& change = {}) const;
  /// The mean own time of a rank before the calls of a site, without its first interval, ns.
  std::map<SiteRank, double> own_means() const;
  /// The factors that give all ranks of a site the mean of its values.
  static std::map<SiteRank, double> equal(const std::map<SiteRank, double>& means);

  /// Chosen: the spread of so many pieces is known well, and a piece has at least four calls.
  static constexpr std::size_t kStretches = 32, kLeastCalls = 4;
  /// Calls of a group of equal_work. Chosen: a mean of so many is known well, and a long call in thirty has a group.
  static constexpr std::size_t kAlike = 32;

 private:
  friend class ReplayRun;
  struct Interval {
    double own = 0;   ///< ns
    double wall = 0;  ///< ns
    bool known = false, first = false;
  };
  void put_in_order();
  void measure();
  void divide();
  /// The own times under a change, by call and member.
  std::vector<std::vector<double>> own_times(const Change& change) const;
  void put_on_time(const Change& change, std::vector<std::vector<double>>& own) const;
  void share_work(const Change& change, std::vector<std::vector<double>>& own) const;
  /// Calls note(call, member, interval) for each known one.
  template <typename Note>
  void for_each_interval(Note note) const;

  std::vector<ReplayCall> calls_;
  int ranks_;
  std::vector<std::vector<Interval>> intervals_;  ///< by call and member
  std::vector<IntervalShares> shares_;
  std::vector<std::size_t> stretch_of_;  ///< by call
  std::size_t stretch_count_ = 0;
};

}  // namespace latecomer::profiles

// SPDX-License-Identifier: BSD-3-Clause
// The gain of a change of the program, by a replay of the recorded arrivals. Every output takes its gains from here.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiles/analysis/profile.hpp"
#include "profiles/record/replay.hpp"

namespace latecomer::profiles::analysis {

/// A smaller share of the run is not worth a finding. Chosen: runs differ by as much.
inline constexpr double kLittle = 0.01;

/// The share of a host's cores that others take, from which their load decides what the ranks' times are.
inline constexpr double kLoaded = 0.1;

/// Shares of the job's run time.
struct GainRange {
  double low = 0, high = 0;
  bool at_most = false;  ///< only the upper end is known: `low` says nothing
  /// Whether a text gives the upper end only.
  bool open() const { return at_most || low < 0.001; }
};

/// The ranks with the longest and the shortest mean own time before the calls of a site, and these times in ns.
struct Extremes {
  std::pair<core::Rank, double> longest{-1, 0}, shortest{-1, 0};
};

/// Refers to the profile, which holds its record of arrivals.
class Gains {
 public:
  explicit Gains(const Profile& profile);
  /// Why there are no figures, as a sentence; "": there are.
  const std::string& why_not() const { return why_not_; }
  /// Whether it is because of the cores, which says nothing about any gain.
  bool lacks_cores() const { return lacks_cores_; }

  /// Why that is no figure, as a sentence; "": it is one.
  std::string why_no(const std::optional<GainRange>& gain) const;

  /// nullopt: there are no figures, or the range would be too wide to say something.
  std::optional<GainRange> of(const Change& change) const;
  /// All ranks have the same mean own time before the calls of a site. `site`: Site::index; -1: every site.
  std::optional<GainRange> equal_work(std::int32_t site = -1) const;
  /// The own times of the rank are distributed as those of the others, but for its set-up before the first call.
  std::optional<GainRange> on_time(core::Rank rank, std::int32_t site = -1) const;
  /// No rank is ever ready without a core. nullopt also where the delays are too short to count.
  std::optional<GainRange> no_delay() const;
  /// All ranks compute equally long before the calls of a site, and each keeps its own rate of delay.
  std::optional<GainRange> equal_computing(std::int32_t site = -1) const;
  /// The mean own time of that host's ranks is that of the other ranks, before the calls of each site.
  std::optional<GainRange> as_others(std::string_view host) const;

  /// nullopt: the record has no interval before the calls of the site.
  std::optional<Extremes> extremes(std::int32_t site) const;

  /// The replay of the whole record, for shares of the recorded time. nullptr: no record.
  const Replay* replay() const { return replay_ ? &*replay_ : nullptr; }

 private:
  void explain(const Profile& profile);
  /// A share of each rank's own time, as factors of it.
  std::map<SiteRank, double> scaled(double (*share)(const ProcessTimes& times)) const;

  const Profile& profile_;
  std::optional<Replay> replay_;
  std::vector<double> recorded_;  ///< the time of each stretch
  double scale_ = 0;              ///< from the time of the stretches to a share of the run
  double recorded_share_ = 1;     ///< of the calls
  double messages_ = 0;           ///< the largest share of a rank's time in messages
  double waits_ = 0;              ///< the longest wait of each recorded call, without the first, ns
  bool at_most_ = false, lacks_cores_ = false;
  std::string why_not_;
};

/// The calls in the form that the replay takes. They refer to the arrays of `record`.
std::vector<ReplayCall> replay_calls(const RecordedArrivals& record);

}  // namespace latecomer::profiles::analysis

// SPDX-License-Identifier: BSD-3-Clause
// The merged contributions of several processes to the profile of a job. At the end of a job, contributions go up a
// tree, and every node merges those of its children. The memory depends on the sites and the ranks, and is limited:
// data that the profile would leave out anyway are dropped and counted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiles/record/record.hpp"

namespace latecomer::profiles {

/// The data of one process that the profile shows for it alone.
struct Member {
  Rank rank = 0;
  bool finished = false;
  std::string host, clock_domain;
  Nanoseconds clock_offset = 0, clock_uncertainty = 0;
  std::int32_t clock_looks = 0;
  Process process;
  CallSample sample;
  static auto members(auto& m) {
    return std::tie(m.rank, m.finished, m.host, m.clock_domain, m.clock_offset, m.clock_uncertainty, m.clock_looks,
                    m.process, m.sample);
  }
};

/// A text of one process.
struct Said {
  Rank rank = 0;
  std::string text;
  static auto members(auto& s) { return std::tie(s.rank, s.text); }
};

/// The end of the snapshots of a job that still runs or was cut short. Seconds since the start of MPI.
struct Reach {
  double first_end = 0, last_end = 0;            ///< the first and the last end of a rank's snapshot
  std::map<Rank, double> covered;                ///< end of the last snapshot that holds data about the rank
  std::vector<std::pair<Rank, double>> aborted;  ///< ranks that called MPI_Abort, and the times
  std::map<Rank, double> own_end;                ///< end of the rank's own snapshot
};

class Merged {
 public:
  /// Limits of a merged part. Derived: a warning takes 1 KiB at most, a decision too, a record 48 bytes, a row of
  /// intervals 320 bytes, and one of a timed site 250 bytes. So these take 130 MiB at most, however many ranks there
  /// are.
  static constexpr std::size_t kMostWarnings = 1000, kMostTexts = 16 << 20, kMostRecords = std::size_t{1} << 20,
                               kMostIntervals = std::size_t{1} << 17;

  /// Adds one process. Each process may be added once.
  void add(const Contribution& one);
  /// Adds the processes of another object.
  void merge(Merged&& other);
  bool empty() const { return members.empty(); }

  /// Replaces `out`.
  void serialize(std::string& out) const;
  static bool deserialize(std::string_view bytes, Merged& out);

  /// The sums over all processes, with the head of the lowest rank. The members `local`, `patterns`, `frames`, `edges`,
  /// `unplanned`, `loads`, `not_counted` and `logs` hold the data of all processes; `warnings`, `plans` and `decisions`
  /// are empty.
  Contribution sum;
  std::vector<Member> members;  ///< by ascending rank
  std::vector<Said> warnings, plans, decisions;
  std::map<SiteKey, std::map<std::int32_t, Intervals>> before;  ///< by row of ranks
  std::map<TimedKey, std::map<std::int32_t, TimedSums>> timed;  ///< by row of ranks
  std::map<TimedKey, Lengths> lengths;                          ///< of messages at these sites
  PairTable pairs;
  MessageMatches messages;  ///< of the ranks that finished
  CodeOfRanks code;
  std::map<std::uint64_t, CodePlace> places;  ///< of `code`
  std::uint64_t warnings_dropped = 0;
  std::uint64_t texts_dropped = 0;    ///< number of plans and decisions that were dropped
  std::uint64_t records_dropped = 0;  ///< number of records in logs that were dropped
  /// Whether the processes name different numbers of ranks, as damaged files of a folder may.
  bool sizes_differ = false;
  std::optional<Reach> reach;  ///< set by the reader of snapshots, not serialized

 private:
  /// What follows `sum` in the bytes.
  static auto parts_of(auto& m) {
    return std::tie(m.members, m.warnings, m.plans, m.decisions, m.before, m.timed, m.lengths, m.pairs, m.messages,
                    m.code, m.places, m.without_rows_, m.folded_, m.warnings_dropped, m.texts_dropped,
                    m.records_dropped, m.sizes_differ, m.logs_below_, m.text_bytes_);
  }
  void take_frames(const std::vector<Frame>& frames);
  void take_unplanned(const std::vector<Unplanned>& all);
  void take_warnings(std::vector<Said>&& more);
  void take_texts(std::vector<Said>& to, std::vector<Said>&& more);
  void limit_logs();
  void limit_before();
  void limit_timed();

  std::set<std::pair<std::uint64_t, std::uint32_t>> framed_;  // site and callers
  std::set<SiteKey> without_rows_;                            // sites whose rows of intervals were dropped
  std::set<TimedKey> folded_;                                 // timed sites that share the entry without a site
  std::uint64_t logs_below_ = UINT64_MAX;                     // logs of communicators from this hash on were dropped
  std::uint64_t text_bytes_ = 0;
};

}  // namespace latecomer::profiles

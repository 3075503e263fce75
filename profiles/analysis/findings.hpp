// SPDX-License-Identifier: BSD-3-Clause
// What a profile says about its run, as typed findings, worst first. It writes no sentences.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/analysis/callers.hpp"
#include "profiles/analysis/code.hpp"
#include "profiles/analysis/gain.hpp"
#include "profiles/analysis/messages.hpp"

namespace latecomer::profiles::analysis {

/// The kinds of findings. Their ids are stable: scripts may compare them.
enum class FindingKind {
  standstill,
  different_calls,
  partial_data,
  cores_taken,
  binding,
  slow_core,
  imbalance,
  wait_at_start_or_end,
  message_wait,
  message_cycle,
  files,
  other_mpi,
  transfer,
  too_short,
  no_problem,
};
struct KindText {
  std::string_view id, meaning;
};
inline constexpr KindText kFindingKinds[] = {
    {"standstill", "Ranks did not move when they were last seen. The text names the call and who is missing there."},
    {"different_calls", "Ranks made different collectives as the same call of a communicator."},
    {"partial_data", "The profile lacks ranks, or the arrivals of many calls. What it lacks is in no figure."},
    {"cores_taken",
     "Other processes, a quota of the job's control group, or a hypervisor took the cores of a host. From 10% on, the "
     "other findings describe that load."},
    {"binding", "Ranks share cores, because a host has fewer cores than ranks, or because their masks overlap."},
    {"slow_core",
     "All ranks of a host compute longer before the same calls than the ranks of the other hosts. The gain is a replay "
     "in which their mean times are those of the other hosts' ranks."},
    {"imbalance",
     "Ranks wait in a collective for a late rank. The gain is a replay of the recorded arrivals: of the rank on time "
     "where the cause can go away (sleep, no core), else of equal work. Equal work gives all ranks the same mean time "
     "before the calls, so that what varies from call to call gains nothing."},
    {"wait_at_start_or_end",
     "Ranks wait for a rank in their first collective or in MPI_Finalize, or spend their time in MPI_Init."},
    {"message_wait",
     "Ranks wait for messages. Where it is known, the chain ends with the rank that does not wait itself."},
    {"message_cycle", "Ranks wait for messages of each other in a circle, so no rank is late alone."},
    {"files", "Ranks spend their time in MPI's calls for files."},
    {"other_mpi", "Ranks spend their time in calls that make communicators, windows and the like."},
    {"transfer",
     "Time passes after the last arrival in a collective for which the catalogue has algorithms that know the "
     "arrivals. That time is an upper bound of what they save; `latecomer advise` says how much."},
    {"too_short", "The calls of the run are too few or too short to look for causes."},
    {"no_problem",
     "No site of collectives has waits of 1% of the time, and messages, files and other calls take less than 5%."}};
static_assert(std::size(kFindingKinds) == static_cast<std::size_t>(FindingKind::no_problem) + 1);

/// How the late rank of a site follows from stretch to stretch of the record.
enum class LatePattern {
  unknown,
  fixed,   ///< it is the same in nearly all stretches
  since,   ///< it is the same from one stretch on, and nobody was late before
  moves,   ///< each stretch has one, and they differ
  random,  ///< no stretch has one
};
inline constexpr std::string_view kLatePatterns[] = {"", "fixed", "since", "moves", "random"};

/// A rank that waits for messages of the next one of a chain, or the last rank of it.
struct ChainStep {
  long rank = 0;
  const TimedCalls* at = nullptr;  ///< the call in which it waits for most of the time; nullptr: not known
};

/// Why a rank is late.
struct Why {
  enum class Source {
    none,       ///< no rank is accused
    intervals,  ///< sampled intervals before the calls
    whole_run,  ///< the parts of the rank's time over the whole run
    earlier,    ///< every interval before the calls was sampled, and they are not longer: it came late to another call
    not_known,  ///< `missing` says what there would have to be
  } source = Source::none;
  std::size_t cause = kCauses;      ///< of intervals: Cause; of the whole run: in kTimeColumns
  double value = 0, reference = 0;  ///< of the rank and of the others: ns per call, or shares of the run
  double share = 0;                 ///< of the lateness; of messages: of the time of the rank that waits most
  double goes = 0;                  ///< share of the lateness that goes away with the cause, if it can
  SleepsFor sleeps_for = SleepsFor::unknown;
  bool own_threads = false;                 ///< its own threads use the cores
  std::vector<ChainStep> chain{};           ///< from the rank that waits; one step: for whom is not known
  std::optional<ChainEnd> end{};            ///< where the chain ends
  std::optional<std::size_t> last_cause{};  ///< of the last rank, if its own time ends the chain
  double last_value = 0, last_reference = 0;
  std::string missing{};
};

struct Finding {
  FindingKind kind = FindingKind::no_problem;
  const Site* site = nullptr;         ///< in which ranks wait
  std::string callers{};              ///< place of the caller, if a function serves many
  const TimedCalls* timed = nullptr;  ///< the call that is no collective with most of the time
  long rank = -1, ranks = 0;          ///< the first late rank, and the number of ranks in its row; 0: nobody is accused
  std::vector<std::string> hosts{};
  LatePattern pattern = LatePattern::unknown;
  double calls = 0, patterns = 0;       ///< of the site, or of the caller's part of it: see CallFigures
  double last_in = 0;                   ///< calls in which the rank came last
  std::optional<Extremes> own_times{};  ///< where these are unequal, and no single rank is accused
  Why why{};
  LateCode code{};  ///< of the late rank, or of the last one in its chain
  std::optional<GainRange> gain{};
  /// What the kind is about. Missing are "ranks", "logs" or "arrivals". Cores are taken by "others" or a "quota"; or
  /// ranks have "no_core", or are "unbound". Of binding: a host has "more_ranks" than cores. Ranks wait at the
  /// "first_call", in "init", or at the "end".
  std::string_view variant{};
  std::string_view basis{};  ///< "equal_work", "equal_computing", "on_time", "as_others", "no_delay" or "after_last"
  std::string no_gain{};     ///< why there is no gain, if there could be one
  Share time{};              ///< the share of the ranks' time that it is about
  bool at_least = false;     ///< that share is a lower bound
  std::vector<std::string> text{};  ///< sentences of the set-up and of ranks that stand still

  /// `part`: the site itself, or the part of it that one caller has.
  void set_site(const Site& of, const CallFigures& part) {
    site = &of;
    calls = part.calls;
    patterns = part.patterns;
  }
  /// The site's waits stay.
  void accuse_nobody() {
    rank = -1;
    ranks = 0;
    hosts.clear();
    if (pattern == LatePattern::fixed || pattern == LatePattern::since) pattern = LatePattern::unknown;
    why = {};
  }
  std::string_view id() const { return kFindingKinds[static_cast<std::size_t>(kind)].id; }
};

/// The sums of a profile from which findings follow. Shares of the ranks' time.
struct RunTotals {
  double time = 0, own_time = 0;  ///< of all ranks: in which their waits are known, and in which their own parts are
  double waited = 0, collectives = 0, messages = 0, files = 0, other_mpi = 0, init = 0, end = 0;
  double outside = 0, no_core = 0;  ///< outside MPI, and the part of it without a core
  double after_last = 0, large = 0, seen = 0, calls = 0;
  double messages_error = 0, waited_error = 0;  ///< standard errors
  double unlogged = 0;  ///< share of the ranks' time in calls that were not logged, and for which no logged ones stand
  /// Whether calls that were not logged take so much of the time that the text says so. They count as outside MPI.
  bool lacks_logs() const;
  /// Whether the waits are a lower bound, because calls are missing.
  bool part_only() const;
  /// What ranks waited at least, as far as the sampling error says.
  double bound() const;
  bool bound_says_nothing() const;
};
RunTotals totals(const Profile& profile);

/// Whether the figures cover only a part of the job: it runs still, or it was cut short.
inline bool cut_short(const Profile& profile) { return profile.job.unfinished > 0; }
/// The ranks that sent no data.
std::vector<int> absent_ranks(const Profile& profile);

/// The share of the time of all ranks that they waited in collectives.
Share wait_share(const Profile& profile);
/// The share of the time of all ranks that an algorithm may shorten: after the last arrival, in calls of more than 2
/// KiB. The catalogue has an algorithm that knows the arrivals for these collectives.
Share shortened_share(const Profile& profile);

/// The findings on the figures and those that others have made, worst first: by gain, then by time. Findings on missing
/// data and on taken cores come first.
std::vector<Finding> findings(const Profile& profile, std::vector<Finding> others = {});

/// The share of a site's waiting from which one rank is named, and of a lateness from which one cause is. Derived: with
/// two ranks, chance gives each one half.
inline constexpr double kNamed = 0.6;

/// The sites with the longest waits, to which findings look.
inline constexpr std::size_t kWorstSites = 3;

}  // namespace latecomer::profiles::analysis

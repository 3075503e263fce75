// SPDX-License-Identifier: BSD-3-Clause
// The job, the call sites and the communicators of a profile, as every output uses them. Times are nanoseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/network/network.hpp"
#include "core/policy/policy.hpp"
#include "profiles/analysis/analysis.hpp"
#include "profiles/analysis/figures.hpp"
#include "profiles/analysis/frame.hpp"
#include "profiles/analysis/lateness.hpp"
#include "profiles/analysis/live_rank.hpp"
#include "profiles/analysis/message_kinds.hpp"
#include "profiles/base/share.hpp"
#include "profiles/record/recorded_calls.hpp"

namespace latecomer::profiles::analysis {

struct ProfileJob {
  std::string program, command_line, start, mpi_library, mode;
  std::string network_from;       ///< as in the profile; "": unknown
  int ranks = 0, unfinished = 0;  ///< `unfinished`: ranks whose figures end with a snapshot
  /// Where the ranks' snapshots end, since the start of MPI, if the job runs still or was cut short; 0: it has ended.
  double first_end = 0, last_end = 0;
  double covered = 0;  ///< the time of all ranks that the snapshots cover; 0: the whole run
  std::size_t hosts = 0;
  double wall = 0;
  double run_time = 0;  ///< the whole run of all ranks (ProcessTimes); 0: not known of all
  /// What latecomer took.
  struct Cost {
    double start = 0;  ///< mean of the ranks, ns: in MPI_Init, and to find call sites
    Share later;       ///< the rest, as a share of the ranks' time without `start`
    std::string most;  ///< the largest part of the rest, as in the profile
    Share unlogged;    ///< of the ranks' time: calls that were not logged, and for which no logged ones stand
  } cost;
  std::optional<core::Promised> promised;  ///< the gain that the policy promises: shares of the run time
  /// How the job used the results of an earlier run; the file is "" if the policy names none.
  struct EarlierRun {
    std::string file, why_not;  ///< why_not: why the job did not use the plan of the earlier run, or ""
    double calls = 0;           ///< calls that the earlier run's winners served
  } history;
  /// The first collective of several ranks. The ranks wait there for the set-up of the program.
  struct FirstWait {
    double waited = 0, awaited = 0;  ///< waits of all ranks; the part of them that was for `rank`
    long rank = -1;                  ///< the rank that the others waited for most
    std::string site;                ///< Site::id; "": an earlier version wrote the profile
    bool may_be_at(const std::string& id) const { return site.empty() || site == id; }
  } first_call;
  /// The time of all ranks in which the profile knows their waits. At least 1 ns.
  double rank_time() const { return std::max(1.0, covered > 0 ? covered : run_time > 0 ? run_time : wall * ranks); }
  /// The same of one rank, as a mean: the run time that texts show.
  double mean_run() const { return rank_time() / std::max(1, ranks); }
};

struct HistogramFigures {
  std::vector<double> edges, counts;
  double mean = 0, max = 0;
  /// The edges of the bucket that holds a quantile.
  std::pair<double, double> bounds(double quantile) const;
  double sum() const;
};

/// The calls that one algorithm served at a site.
struct Dispatch {
  std::string algorithm;
  double calls = 0, elapsed = 0, after_last = 0;  ///< the times are means
};

/// The choice of an algorithm for the calls of one size, and its reason.
struct DecisionFigures {
  std::string algorithm, reason, predictor;
  double bytes = -1, calls = 0;  ///< `bytes` -1: any size
  std::optional<int> last_rank;  ///< rank that comes last in the forecast
  double spread = 0, error = 0;  ///< first to last arrival in the forecast; error of the forecast
  std::optional<double> predicted, native_predicted, measured, native_measured;
};

/// The calls that got their arrival pattern from one source.
struct SourceFigures {
  std::string name;
  double calls = 0;
  std::optional<double> error;  ///< mean error of the pattern per rank, ns
};

/// One caller of a site, with all frames above it. `ranks` holds the longest awaited ranks only.
struct CallerFigures : CallFigures {
  std::vector<NamedFrame> frames;  ///< innermost first; empty: not known
};

/// The figures of one row of ranks, for a map of all rows.
struct RankCell {
  std::int64_t rank, ranks;                      ///< the first rank of the row, and the number of its ranks
  float offset_ns, waited_ns, awaited_ns, last;  ///< as in the profile: a mean, then three sums over the row's ranks
};

/// A call site. Its `ranks` are of three kinds: rows that come last most often, those with the greatest mean offset,
/// and those that others waited for most.
struct Site : CallFigures {
  std::string id;
  std::size_t index = 0;           ///< index of the site in the file
  std::vector<NamedFrame> frames;  ///< innermost first; at least one
  Baseline baseline;
  double rank_calls = 0, rested = 0, divergent = 0;
  double logged = 0;        ///< calls that were logged; fewer than `patterns`: these stand for the others
  double waited_error = 0;  ///< standard error of `waited` then, ns
  std::int64_t least_bytes = 0, most_bytes = 0;  ///< if `bytes` are known
  HistogramFigures elapsed, first_to_last, after_last_histogram;
  std::vector<Dispatch> dispatch;
  std::vector<DecisionFigures> decisions;
  std::vector<SourceFigures> sources;
  std::vector<CallerFigures> callers;
  std::vector<double> offsets_ns, stddevs_ns;  ///< figures of all rows, if the reader was asked for them
  std::vector<RankCell> cells;                 ///< figures of all rows, if the reader was asked for them

  std::string place() const { return analysis::place_of(frames); }
  /// The number of calls outside idle epochs, which the mean imbalance covers.
  double unrested() const { return calls - rested; }
  /// The time of all ranks from arrival to exit, in the calls that were logged and those that these stand for.
  double spent() const { return elapsed.sum(); }
};

/// A call site of an MPI function that is no collective and may wait. Times are sums.
struct TimedCalls {
  std::string id, call, part;      ///< "several" in the row of all further sites
  std::vector<NamedFrame> frames;  ///< innermost first; at least one
  double calls = 0, timed = 0;
  double time = 0, error = 0;      ///< in the calls; its standard error
  double together = 0;             ///< of `time`: waits for several ranks at once
  double messages = 0, bytes = 0;  ///< that the calls sent, or received at once
  KindFigures kinds;
  struct Row {
    long rank = 0;  ///< the first one, if several share the row
    double time = 0;
    std::vector<IntervalFigures::Peer> peers;  ///< longest first
  };
  std::vector<Row> rows;
};

/// What a row of ranks sent to another row, and how long it waited for the messages of that.
struct PairFigures {
  long rank = 0, peer = 0;  ///< the first ones of their rows
  double messages = 0, bytes = 0, waited = 0;
};
struct PairsFigures {
  long per_row = 1;
  std::vector<PairFigures> pairs;  ///< those that are not zero
};

/// Calls that some figures leave out (profiles/record/not_counted.hpp).
struct UncountedFigures {
  std::string what;
  double calls = 0, ranks = 0;
};

/// What ran on a host beside the job. Empty values are not known.
struct HostLoadFigures {
  std::string host;
  double ranks = 0, cores = 0, usable = 0;  ///< of the job; online; that some rank may use
  double span = 0;                          ///< of the measurement, ns
  std::optional<double> others;             ///< processor time of the processes that are no ranks, ns
  double others_error = 0;                  ///< its standard error
  std::optional<double> pressure;           ///< time in which some process waited for a core, ns
  std::optional<double> throttled;          ///< in which a quota held back the job's group, ns, sum over the cores

  Share others_share() const { return others ? Share::of(*others, cores * span) : Share(); }
  /// The share that others took at least, as far as the error of the measurement says.
  double others_least() const {
    return others_share().known() ? Share::of(std::max(0.0, *others - 2 * others_error), cores * span).value() : 0;
  }
  /// The cores that the ranks can use at the same time.
  double used() const { return std::min(ranks, usable); }
};

/// The calls of a group of ranks. Communicators with the same members are one group.
struct Communicator {
  std::string members;                                          ///< "0-3"
  int ranks = 0;                                                ///< 0: all groups beyond the limit of the profile
  double calls = 0, waited = 0, imbalance = 0, after_last = 0;  ///< the last two are means
  Share share;                                                  ///< `waited` as a share of the time of all ranks
};

}  // namespace latecomer::profiles::analysis

namespace latecomer::profiles {

using analysis::Site;

/// A profile as the commands use it. Of the rows of ranks, a site holds up to kRowsKept of each kind.
struct Profile {
  analysis::ProfileJob job;
  std::optional<core::Network> network;             ///< as the job measured it, or as its policy has it
  std::vector<analysis::ProcessFigures> processes;  ///< empty: a profile of the first versions
  std::vector<analysis::TimedCalls> timed_sites;    ///< longest first
  std::vector<analysis::TimedCalls> thread_sites;   ///< those of the threads that did not start MPI
  analysis::PairsFigures pairs;
  analysis::CodeFigures code;
  std::vector<analysis::HostLoadFigures> loads;  ///< one per host at most
  std::vector<analysis::UncountedFigures> not_counted;
  std::vector<Site> sites;  ///< in the order of the file
  std::vector<analysis::Communicator> communicators;
  std::vector<std::string> warnings;
  std::vector<std::string> hosts;          ///< by rank; "": the rank sent no data
  std::optional<RecordedArrivals> record;  ///< if it was asked for and is there
  analysis::LiveState last_state;          ///< where the ranks were when they were seen last; no ranks: not known
  analysis::Analysis analysis;             ///< over all rows of all sites
};

}  // namespace latecomer::profiles

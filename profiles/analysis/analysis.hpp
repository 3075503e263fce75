// SPDX-License-Identifier: BSD-3-Clause
// The figures of a job's ranks and hosts, summed over all its call sites. Every output takes them from here.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/analysis/code.hpp"
#include "profiles/analysis/lateness.hpp"

namespace latecomer::profiles::analysis {

/// The run of a process, in parts: from its MPI_Init to the moment at which the last process of the job enters
/// MPI_Finalize. Nanoseconds.
struct ProcessTimes {
  double computing = 0, kernel = 0, runnable = 0, blocked = 0, messages = 0, io = 0, other_mpi = 0, collectives = 0;
  double threads = 0, threads_in_mpi = 0;  ///< of the process's other threads; no part includes them
  double init = 0, end = 0, ends = 0;      ///< in MPI_Init; in MPI_Finalize until the last process has come there; both
  void add(const ProcessTimes& o);
  /// The time outside MPI.
  double own() const { return computing + kernel + runnable + blocked; }
};

/// A part of a process's time: its key in files, its title in tables, and its meaning.
struct TimeColumn {
  std::string_view key, title, meaning;
  double ProcessTimes::*value;
};
inline constexpr TimeColumn kTimeColumns[] = {
    {"computing_ns", "computes", "On a processor, in the program", &ProcessTimes::computing},
    {"kernel_ns", "kernel", "System calls and page faults", &ProcessTimes::kernel},
    {"runnable_ns", "no core", "Ready to run, but without a core", &ProcessTimes::runnable},
    {"blocked_ns", "blocked", "Asleep or stopped", &ProcessTimes::blocked},
    {"messages_ns", "messages", "In MPI calls that wait for messages, and in one-sided calls", &ProcessTimes::messages},
    {"io_ns", "files", "In MPI's calls for files", &ProcessTimes::io},
    {"other_mpi_ns", "other MPI", "In other MPI calls that may wait, such as those that make communicators",
     &ProcessTimes::other_mpi},
    {"collectives_ns", "in coll.", "Inside blocking collectives", &ProcessTimes::collectives},
    {"ends_ns", "ends", "In MPI_Init, and in MPI_Finalize until the last rank has come there", &ProcessTimes::ends}};
/// The first ones may make a rank late at a collective.
inline constexpr std::size_t kPartsBetween = 8;

/// The data of one process of the job.
struct ProcessFigures {
  long rank = 0;
  std::string host;
  double wall = 0;  ///< the whole run, ns
  ProcessTimes times;
  double cores = 0, host_cores = 0;  ///< cores that the process may use; cores of its host
  std::string core_list{};           ///< numbers of the cores that the process may use, "0-3,8"; "": unknown
  std::string waiting{};             ///< "courteous": the process gives its core away while it waits
  std::vector<IntervalFigures::Peer>
      peers{};                ///< ranks whose messages it waited for, longest first, ns of the whole run
  double messages_error = 0;  ///< standard error of the time in messages
  double covered = 0;         ///< the time in which its waits in collectives are known; 0: `wall`
  /// A row of threads that did not start MPI.
  struct Threads {
    double threads = 0, calls = 0;
    ProcessTimes times{};  ///< those in MPI alone
    bool shared = false;   ///< several of them ran at a time
  };
  std::vector<Threads> threads{};
  SamplingFigures sampling{}, other_sampling{};  ///< of the thread that started MPI, and of other threads
  double all_threads_inside = 0;  ///< time for which all threads that call MPI were inside at once, at least
  double known() const { return covered > wall ? covered : wall; }
  double between() const { return wall - times.ends; }
};

/// Estimates of POP's efficiencies from the sums of each rank, as shares of the time that the rank's data cover. POP
/// replays a trace on an ideal network. Here the time of transfers is the time in MPI that neither the
/// arrivals nor the waits for late ranks explain. All efficiencies are from 0 to 1; communication = serialisation x
/// transfer. All are 0 if no process is known, or if no process did anything outside MPI.
struct Efficiency {
  double load_balance = 0;   ///< mean over longest time outside MPI
  double communication = 0;  ///< longest time outside MPI over run time
  double serialisation = 0;  ///< longest time outside MPI over run time without transfers
  double transfer = 0;       ///< run time without transfers over run time
};

/// Shares by Cause, which add up to 1. The last one is the share that no cause explains.
using Causes = std::array<double, kCauses + 1>;

/// Figures that ranks and hosts share. Sums over the ranks, nanoseconds.
struct Figures {
  double ranks = 0, wall = 0;  ///< the number of ranks, and their run time; wall 0: the ranks sent no data
  double covered = 0;          ///< the time in which the waits are known; more than `wall` if a leader has more records
  ProcessTimes times;
  double waited = 0, awaited = 0;  ///< time that the ranks waited; time that other ranks waited for them
  double last = 0;                 ///< number of calls in which one of the ranks came last
};

/// A rank, or the ranks that share a row of the profile.
struct RankFigures : Figures {
  long first = 0;
  /// The ranks that the causes cover: those of one row of the profile. If the profile has the other figures for each
  /// single rank, these are more than `ranks`, and `blamed` is the mean over them.
  long causes_first = 0, causes_ranks = 1;
  std::string host;
  std::vector<IntervalFigures::Peer> peers{};  ///< for a single rank: as ProcessFigures::peers
  double messages_error = 0;                   ///< standard error of the time in messages, ns
  double calls = 0;                            ///< calls for which the lateness of the rank is known
  std::optional<double> late;                  ///< mean time from the mean arrival of the other ranks to its own, ns
  std::optional<Causes> causes;                ///< causes of its lateness; empty: it was not late, or has no samples
  /// Computing time before the calls of sites with samples, and the same as the mean over all ranks, ns.
  double computed = 0, computed_by_all = 0;
  /// Time that other ranks waited because of this rank, in collectives or over a chain of waits for messages, ns.
  double blamed = 0;
  std::optional<Causes> blamed_causes;
  /// Whether the lateness takes at least 1% of the rank's time. The report gives no cause for less.
  bool is_late() const { return late && *late * calls >= 0.01 * wall / ranks && *late > 0; }
  std::string name() const { return RankRow::ranks_name(first, static_cast<long>(ranks)); }
  std::string named() const { return RankRow::ranks_named(first, static_cast<long>(ranks)); }
  /// Whether the causes cover more ranks than the other figures; the name of these ranks.
  bool shares_causes() const { return causes_ranks > static_cast<long>(ranks); }
  std::string causes_name() const { return RankRow::ranks_name(causes_first, causes_ranks); }
};

struct HostFigures : Figures {
  std::string name;
  Efficiency efficiency;
};

/// The sums of one rank over all sites.
struct RankTotals {
  long rank = 0;
  double calls = 0, last = 0, late = 0;  ///< late: mean
  double waited = 0, awaited = 0;
};

/// Memory: O(ranks). Sites are read one at a time.
class Analysis {
 public:
  /// Adds a site. `calls` holds all its rows.
  void add(const CallFigures& calls, const Baseline& baseline);
  /// Joins the sums of the sites with the processes. `ranks`: size of the job; a damaged profile may hold further
  /// ranks, which are left out. `sums`: sums of single ranks, which replace the sums of rows of several ranks.
  void finish(const std::vector<ProcessFigures>& processes, long ranks, const std::vector<RankTotals>& sums = {});

  const std::vector<RankFigures>& ranks() const { return ranks_; }  ///< by ascending rank
  const std::vector<HostFigures>& hosts() const { return hosts_; }  ///< by name, without unknown hosts
  const Efficiency& efficiency() const { return efficiency_; }
  /// The number of ranks that share a row of the profile's sites.
  long ranks_per_row() const { return per_row_; }
  /// The number of ranks that share one of ranks(): 1 if the profile has the sums of each rank.
  long ranks_per_sum() const { return per_sum_; }

 private:
  struct Sum {
    long ranks = 0;
    double waited = 0, awaited = 0, last = 0, late = 0, calls = 0;
    double sampled = 0;  ///< lateness at the calls of sites with samples
    Shares excess{};     ///< by cause: how much longer the rank's intervals are at these sites, over all calls
    Causes blamed{};
    double computed = 0, computed_by_all = 0;
    double messages = 0, explained = 0;  ///< waits for messages in sampled intervals; the part that lateness explains
    double transfers = 0;                ///< time of transfers per rank, at calls whose ranks are known
  };
  Efficiency efficiency_of(const std::vector<ProcessFigures>& processes, const std::string* host) const;
  const Sum* sum_of(long rank) const;
  static void add_causes(const Sum& sum, RankFigures& row);

  std::map<long, Sum> sums_;  ///< by the first rank of a row
  double transfers_ = 0;      ///< time of transfers at calls whose ranks are not known, in ranks x ns
  long per_row_ = 1, per_sum_ = 1;
  std::vector<RankFigures> ranks_;
  std::vector<HostFigures> hosts_;
  Efficiency efficiency_;
};

}  // namespace latecomer::profiles::analysis

// SPDX-License-Identifier: BSD-3-Clause
// The figures of a job's ranks and hosts, summed over all its call sites. Every output takes them from here.
#pragma once

#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/analysis/lateness.hpp"

namespace latecomer::analysis {

/// Where the time of a process went, from the start of MPI to its end. Nanoseconds.
struct Times {
  double computing = 0, kernel = 0, runnable = 0, blocked = 0, messages = 0, io = 0, collectives = 0;
  void add(const Times& o);
  /// What the process did outside MPI.
  double own() const { return computing + kernel + runnable + blocked; }
};

/// A part of a process's time: its key in files, its title in tables, and what it means.
struct TimeColumn {
  std::string_view key, title, meaning;
  double Times::*value;
};
inline constexpr TimeColumn kTimeColumns[] = {
    {"computing_ns", "computes", "On a processor, in the program", &Times::computing},
    {"kernel_ns", "kernel", "System calls and page faults", &Times::kernel},
    {"runnable_ns", "no core", "Ready to run, but without a core", &Times::runnable},
    {"blocked_ns", "blocked", "Asleep or stopped", &Times::blocked},
    {"messages_ns", "messages", "In other MPI calls that wait for ranks", &Times::messages},
    {"io_ns", "files", "In MPI's calls for files", &Times::io},
    {"collectives_ns", "in coll.", "Inside blocking collectives", &Times::collectives}};

/// The data of one process of the job.
struct Process {
  long rank = 0;
  std::string host;
  double wall = 0;  ///< ns
  Times times;
  double cores = 0, host_cores = 0;      ///< that it may use, and of its host
  std::string core_list{};               ///< numbers of the cores that it may use, "0-3,8"; "": unknown
  bool courteous = false;                ///< it gives its core away while it waits
  std::vector<Intervals::Peer> peers{};  ///< ranks whose messages it waited for, longest first, ns of the whole run
  double covered = 0;                    ///< the time in which its waits in collectives are known; 0: `wall`
  double known() const { return covered > wall ? covered : wall; }
};

/// POP's efficiencies, estimated from sums of the ranks' own times, each as a part of what its rank's data cover. POP
/// replays a trace on an ideal network. Here the time of transfers is what the arrivals and the waits for late ranks do
/// not explain. All from 0 to 1; communication = serialisation x transfer. All 0: no process is known, or none did
/// anything outside MPI.
struct Efficiency {
  double load_balance = 0;   ///< mean over longest time outside MPI
  double communication = 0;  ///< longest time outside MPI over run time
  double serialisation = 0;  ///< longest time outside MPI over run time without transfers
  double transfer = 0;       ///< run time without transfers over run time
};

/// Shares by Cause, which add up to 1. The last one is what no part explains.
using Causes = std::array<double, kCauses + 1>;

/// Figures that ranks and hosts share. Sums over the ranks, nanoseconds.
struct Figures {
  double ranks = 0, wall = 0;  ///< the number of ranks, and their run time; wall 0: they sent no data
  double covered = 0;          ///< the time in which their waits are known: more than `wall` where a leader knows more
  Times times;
  double waited = 0, awaited = 0;  ///< time that they waited, and that others waited for them
  double last = 0;                 ///< times that one of them came last
};

/// A rank, or the ranks that share a row of the profile.
struct Rank : Figures {
  long first = 0;
  /// The ranks that the causes cover: those of a row of the profile. More than `ranks` where the profile has the other
  /// figures of single ranks. `blamed` is then the mean of these ranks.
  long causes_first = 0, causes_ranks = 1;
  std::string host;
  std::vector<Intervals::Peer> peers{};  ///< of a single rank: as Process::peers
  double calls = 0;                      ///< of which its lateness is known
  std::optional<double> late;            ///< mean time from the mean arrival of the others to its own, ns
  std::optional<Causes> causes;          ///< of its lateness; empty: it was not late, or nothing was sampled
  /// Time of computing before the calls of sites with samples, and what the ranks' means there add up to, ns.
  double computed = 0, computed_by_all = 0;
  double blamed = 0;  ///< time that others waited because of it, waits for messages followed, ns
  std::optional<Causes> blamed_causes;
  /// Whether its lateness takes 1% of its time and more. The cause of less explains nothing.
  bool is_late() const { return late && *late * calls >= 0.01 * wall / ranks && *late > 0; }
  std::string name() const { return RankRow::ranks_name(first, static_cast<long>(ranks)); }
  std::string named() const { return RankRow::ranks_named(first, static_cast<long>(ranks)); }
  /// Whether the causes are of more ranks than the other figures, and the name of these ranks.
  bool shares_causes() const { return causes_ranks > static_cast<long>(ranks); }
  std::string causes_name() const { return RankRow::ranks_name(causes_first, causes_ranks); }
};

struct Host : Figures {
  std::string name;
  Efficiency efficiency;
};

/// The sums of one rank over all sites.
struct RankSums {
  long rank = 0;
  double calls = 0, last = 0, late = 0;  ///< late: mean
  double waited = 0, awaited = 0;
};

/// Memory: O(ranks). Sites are read one at a time.
class Analysis {
 public:
  /// Adds a site. `calls` holds all its rows.
  void add(const Calls& calls, const Baseline& baseline);
  /// Joins the sums of the sites with the processes. `ranks`: of the job; others, which only a damaged profile holds,
  /// are left out. `sums`: of single ranks, for which they replace those of rows that share ranks.
  void finish(const std::vector<Process>& processes, long ranks, const std::vector<RankSums>& sums = {});

  const std::vector<Rank>& ranks() const { return ranks_; }  ///< by ascending rank
  const std::vector<Host>& hosts() const { return hosts_; }  ///< by name, without unknown hosts
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
    Shares excess{};     ///< by which its intervals are longer there, over all calls
    Causes blamed{};
    double computed = 0, computed_by_all = 0;
    double messages = 0, explained = 0;  ///< of its sampled intervals
    double transfers = 0;                ///< of each of its ranks, at calls whose ranks are known
  };
  Efficiency efficiency_of(const std::vector<Process>& processes, const std::string* host) const;
  const Sum* sum_of(long rank) const;
  static void add_causes(const Sum& sum, Rank& row);

  std::map<long, Sum> sums_;  ///< by the first rank of a row
  double transfers_ = 0;      ///< of each rank of the job, ranks x ns: at calls whose ranks are not known
  long per_row_ = 1, per_sum_ = 1;
  std::vector<Rank> ranks_;
  std::vector<Host> hosts_;
  Efficiency efficiency_;
};

}  // namespace latecomer::analysis

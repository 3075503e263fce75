// SPDX-License-Identifier: BSD-3-Clause
// The data of a profile in memory: accumulated per call site, rank and communicator. This file is the seam between the
// shim, which fills the data, and the writer of the profile. It does not know MPI.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/collective/collective.hpp"
#include "core/network/network.hpp"
#include "core/policy/policy.hpp"
#include "profiles/record/arrivals.hpp"
#include "profiles/record/call_record.hpp"
#include "profiles/record/call_sample.hpp"
#include "profiles/record/code_samples.hpp"
#include "profiles/record/cost.hpp"
#include "profiles/record/digest.hpp"
#include "profiles/record/histogram.hpp"
#include "profiles/record/host_load.hpp"
#include "profiles/record/message_ends.hpp"
#include "profiles/record/not_counted.hpp"
#include "profiles/record/peers.hpp"
#include "profiles/record/site_key.hpp"
#include "profiles/record/thread_sums.hpp"
#include "profiles/record/timed_site.hpp"

namespace latecomer::profiles {

using core::Bytes;
using core::Rank;

/// The time of the thread that started MPI, in parts, for some span of time. The eight parts add up to `wall`.
struct Usage {
  Nanoseconds wall = 0;
  Nanoseconds collectives = 0;  ///< inside blocking collectives
  Nanoseconds messages = 0;     ///< inside MPI calls that wait for messages
  Nanoseconds io = 0;           ///< inside MPI's calls for files
  Nanoseconds other_mpi = 0;    ///< inside other MPI calls that may wait, such as those that make communicators
  Nanoseconds computing = 0;    ///< on a processor, in the program
  Nanoseconds kernel = 0;       ///< on a processor, in the kernel: system calls and page faults
  Nanoseconds runnable = 0;     ///< ready to run, but without a core
  Nanoseconds blocked = 0;      ///< asleep or stopped
  std::uint64_t faults = 0;     ///< page faults
  std::uint64_t preempted = 0;  ///< how often another process or thread took the processor
  Nanoseconds threads = 0;      ///< processor time of the process's other threads, which no part includes
  /// At least one of these threads was inside MPI: a lower bound.
  Nanoseconds threads_in_mpi = 0;
  Nanoseconds counted = 0;  ///< processor time in the program in which these were counted; 0: the machine does not:
  std::uint64_t instructions = 0, cycles = 0;
  Nanoseconds faulting = 0;  ///< the most that `faults` can take of `kernel`, by the cost measured at the start
  /// The time of `kernel` that page faults explain.
  Nanoseconds page_faults() const { return std::min(kernel, faulting); }
  /// `times`: the factor with which the other figures count.
  void add(const Usage& o, std::int64_t times = 1) {
    for (Nanoseconds Usage::*part : {&Usage::wall, &Usage::collectives, &Usage::messages, &Usage::io, &Usage::other_mpi,
                                     &Usage::computing, &Usage::kernel, &Usage::runnable, &Usage::blocked,
                                     &Usage::threads, &Usage::threads_in_mpi, &Usage::counted, &Usage::faulting})
      this->*part = plus(this->*part, o.*part, times);
    faults += static_cast<std::uint64_t>(times) * o.faults;
    preempted += static_cast<std::uint64_t>(times) * o.preempted;
    instructions += static_cast<std::uint64_t>(times) * o.instructions;
    cycles += static_cast<std::uint64_t>(times) * o.cycles;
  }
};

/// Sampled intervals from the exit of one blocking collective to the arrival at the next.
struct Intervals {
  std::uint64_t samples = 0;
  std::uint64_t stand_for = 0;  ///< intervals that the samples stand for; long intervals are sampled more often
  Usage sum;                    ///< sum over all intervals that the samples stand for
  Peers peers;                  ///< the ranks whose messages were waited for in `messages`, where they are known
  /// `stands_for`: the number of intervals that this sample stands for.
  void add(const Usage& one, const Peers& waited_for, std::uint32_t stands_for) {
    ++samples;
    stand_for += stands_for;
    sum.add(one, stands_for);
    peers.merge(waited_for, stands_for);
  }
  void merge(const Intervals& o) {
    samples += o.samples;
    stand_for += o.stand_for;
    sum.add(o.sum);
    peers.merge(o.peers);
  }
};

/// How a rank counts a call. If all members of the communicator are ranks of the job, each rank counts its part of the
/// call. The site of the call's owner (CallDigest) has the credit for it, so a rank also counts the calls that it owns.
/// Otherwise one of the job's ranks counts the whole call, and the other ranks of the job count nothing (beside).
enum class Tally : std::uint8_t { part, owned, whole, beside };

/// The data about a site that a rank collects without other ranks.
struct LocalSite {
  std::uint64_t calls = 0;
  std::uint64_t owned = 0;               ///< calls with Tally::owned
  std::uint64_t outside = 0, stood = 0;  ///< calls with members outside the job; those of them with Tally::whole
  std::uint64_t rested = 0;              ///< native calls in idle epochs for which no other calls stand
  std::int64_t bytes_min = INT64_MAX, bytes_max = INT64_MIN;
  double bytes_sum = 0;
  std::uint64_t sized = 0;  ///< calls with a known size
  Histogram elapsed;
  Intervals before;  ///< intervals that ended with an arrival at this site
  /// `spent`: from arrival to exit, -1 if it is unknown. `bytes`: -1 if unknown. `rests`: the call is in an idle epoch.
  void add(Nanoseconds spent, Bytes bytes, bool rests = false, Tally share = Tally::part) {
    ++calls;
    owned += share == Tally::owned;
    if (share > Tally::owned) [[unlikely]] {
      ++outside;
      stood += share == Tally::whole;
    }
    rested += rests;
    if (spent >= 0) elapsed.add(spent);
    if (bytes < 0) return;
    bytes_min = std::min(bytes_min, bytes);
    bytes_max = std::max(bytes_max, bytes);
    bytes_sum += static_cast<double>(bytes);
    ++sized;
  }
  /// Adds `so_many` native calls of an idle epoch; the rank owns `its_own` of them, and `with_size` have known sizes.
  /// Their elapsed times were not measured. `stood_for`: other epochs stand for them.
  void add_rested(std::uint64_t so_many, std::uint64_t its_own, std::uint64_t with_size, Bytes least, Bytes most,
                  double sum, bool stood_for) {
    calls += so_many;
    owned += its_own;
    if (!stood_for) rested += so_many;
    sized += with_size;
    bytes_sum += sum;
    bytes_min = std::min(bytes_min, least);
    bytes_max = std::max(bytes_max, most);
  }
  void merge(const LocalSite& other);
  // For a sum over all ranks:
  /// The number of calls on communicators of `comm_size` processes that are all ranks of the job.
  std::uint64_t calls_inside(std::int32_t comm_size) const { return share_of(calls - outside, comm_size); }
  /// The number of calls on communicators with processes outside the job. A lower bound if data of a rank with
  /// Tally::whole are missing.
  std::uint64_t calls_outside(std::int32_t comm_size) const { return std::max(stood, share_of(outside, comm_size)); }

 private:
  static std::uint64_t share_of(std::uint64_t sum, std::int32_t comm_size) {
    const auto size = static_cast<std::uint64_t>(std::max(comm_size, 1));
    return (sum + size - 1) / size;
  }
};

/// The local sites of one process. A lookup takes a few nanoseconds: open addressing over entries that never move.
class LocalBook {
 public:
  struct Entry {
    SiteKey key;
    LocalSite site;
  };
  /// The entry of `key`, created if necessary. After kMostSites entries all new keys share the entry of site 0.
  LocalSite& operator[](const SiteKey& key);
  const std::deque<Entry>& entries() const { return entries_; }

 private:
  std::deque<Entry> entries_;
  std::vector<std::uint32_t> index_;  // 1 + index in entries_; 0: free
};

/// A queue of calls to count. add() prefetches the site's counters, and drain() updates them later. With many sites,
/// the cache misses overlap and do not delay each call.
class LocalQueue {
 public:
  void add(LocalSite* site, Nanoseconds spent, Bytes bytes, bool rests, Tally share) {
    __builtin_prefetch(site, 1);
    __builtin_prefetch(reinterpret_cast<const char*>(site) + 64, 1);
    if (count_ == kQueued) drain();
    queue_[count_++] = {site, spent, bytes, rests, share};
  }
  [[gnu::noinline]] void drain() {
    for (int i = 0; i < count_; ++i)
      queue_[i].site->add(queue_[i].spent, queue_[i].bytes, queue_[i].rests, queue_[i].share);
    count_ = 0;
  }

 private:
  /// Derived: the queue takes 1 KiB. Measured for 1, 8, 32 and 128 places, in a loop without other work: with 1,000
  /// sites in random order, a call takes 5.3, 4.2, 4.3 and 4.8 ns. With one site it takes 5.2, 4.3, 4.1 and 4.1 ns.
  static constexpr int kQueued = 32;
  struct QueuedCall {
    LocalSite* site;
    Nanoseconds spent;
    Bytes bytes;
    bool rests;
    Tally share;
  };
  int count_ = 0;
  QueuedCall queue_[kQueued];
};

/// Limits the memory of a process. A site key takes 2.7 KiB, and on the leader of a communicator 600 bytes more per row
/// of ranks. After kMostSites keys, all new calls share one site. Derived: 11 MiB per process.
inline constexpr std::size_t kMostSites = 4096;
/// After this number of keys, new callers share the entry of their site.
inline constexpr std::size_t kMostWithCallers = kMostSites / 2;
/// On the leader, callers have entries of their own up to this number of rows. Derived: 75 MiB, which holds the rows of
/// 32 callers in a job of 4,096 ranks.
inline constexpr std::size_t kMostCallerRows = std::size_t{1} << 17;
/// Limits of the profile file: sites, and rows of ranks per site. Derived: a row takes about 300 bytes, so a profile
/// takes 1.2 GB at most. The sites with the least time are then folded into one, and consecutive ranks share a row. A
/// warning says so.
inline constexpr std::size_t kMostSitesWritten = 1000;
inline constexpr int kMostRows = 4096;
/// Number of ranks that share a row.
constexpr int ranks_per_row(int ranks) { return (ranks + kMostRows - 1) / kMostRows; }

/// One row of ranks: one rank, or a group of consecutive ranks in jobs of more than kMostRows ranks.
struct RankOffsets {
  Histogram offset;              ///< offsets of arrivals from the first arrival
  std::uint64_t last_count = 0;  ///< number of times that a rank of the row arrived last
  double waited_ns = 0;          ///< time in which its ranks waited for others (profiles/record/waiting.hpp)
  double awaited_ns = 0;         ///< time that other ranks waited for its ranks, summed over those that waited
};

/// Rows in ascending order of their numbers. `guess` is the expected index of a row. Calls of one communicator touch
/// the same rows in the same order, so the guess usually finds the row at once.
class RankRows {
 public:
  using Row = std::pair<std::int32_t, RankOffsets>;
  RankOffsets& at_or_new(std::int32_t row, std::size_t guess);
  const RankOffsets& at(std::int32_t row) const;
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<Row> rows_;
};

/// Sums of one rank over all calls with records of all ranks, at all sites. Calls on a communicator of one rank do not
/// count.
struct RankSums {
  double waited_ns = 0, awaited_ns = 0;  ///< as in RankOffsets
  std::uint64_t last_count = 0;
  std::uint64_t calls = 0;
  double late_ns = 0;  ///< time from the mean arrival of the other ranks to the rank's own, summed over the calls
  void add(const RankSums& o) {
    waited_ns += o.waited_ns;
    awaited_ns += o.awaited_ns;
    last_count += o.last_count;
    calls += o.calls;
    late_ns += o.late_ns;
  }
};

/// The sums of the ranks that a process leads, separate for each rank in jobs of any size. Only ranks with sums take
/// memory, 40 bytes each.
class SumsByRank {
 public:
  /// Allocates for the first rank of a block only.
  RankSums& operator[](Rank rank) {
    const std::size_t at = static_cast<std::size_t>(rank) / kBlock;
    if (at >= blocks_.size()) blocks_.resize(at + 1);
    if (blocks_[at].empty()) blocks_[at].resize(kBlock);
    return blocks_[at][static_cast<std::size_t>(rank) % kBlock];
  }
  /// Calls f(rank, sums) for each rank with calls, or for which others waited, in ascending order.
  template <typename F>
  void each(F f) const {
    for (std::size_t at = 0; at < blocks_.size(); ++at)
      for (std::size_t i = 0; i < blocks_[at].size(); ++i)
        if (blocks_[at][i].calls > 0 || blocks_[at][i].awaited_ns > 0)
          f(static_cast<Rank>(at * kBlock + i), blocks_[at][i]);
  }
  void merge(const SumsByRank& o) {
    o.each([&](Rank rank, const RankSums& sums) { (*this)[rank].add(sums); });
  }

 private:
  /// Derived: an empty block takes 24 bytes, less than 1 byte per rank. A leader of two distant ranks has two blocks of
  /// 2.5 KiB. Larger blocks would waste more.
  static constexpr std::size_t kBlock = 64;
  std::vector<std::vector<RankSums>> blocks_;
};

struct DispatchStats {
  std::uint64_t calls = 0;
  double elapsed_sum = 0;  ///< sum over calls of the mean elapsed time
  double after_last_sum = 0;
};

/// Calls that used patterns from one source. `error_sum_ns`: the mean over ranks of the absolute error of the pattern,
/// summed over calls.
struct PatternSource {
  std::uint64_t calls = 0;
  double error_sum_ns = 0;
};

/// The sampling error of a sum of times over the logged epochs of a communicator. Which epochs are logged is random, so
/// the variance of the sum is that of Horvitz and Thompson's estimate: the square of an epoch's value, by what it
/// stands for. It is rather too large where the epochs are alike. Epochs that stand for themselves add nothing.
class Spread {
 public:
  void add(const StandsFor& of, double value) {
    if (of.epochs == 1) return;
    if (of.epoch != open_.epoch) begin(of);
    sum_ += value;
  }
  void merge(Spread other) {
    other.begin({});
    squares_ += other.squares_;
  }
  /// The standard error of the estimated sum.
  double error() const {
    Spread all = *this;
    all.begin({});
    return std::sqrt(all.squares_);
  }

 private:
  /// Adds the epoch that is open, and opens another one.
  void begin(const StandsFor& of) {
    squares_ += std::max(0.0, open_.time * (open_.time - 1)) * sum_ * sum_;
    open_ = of;
    sum_ = 0;
  }
  StandsFor open_;                ///< the epoch that is open
  double squares_ = 0, sum_ = 0;  ///< of earlier epochs; of the open epoch
};

/// Data about a site from calls with records of all ranks. Figures stand for the calls of epochs that were not logged.
struct PatternSite {
  std::uint64_t calls = 0, divergent_calls = 0;
  std::uint64_t logged = 0;         ///< calls with records of all ranks, each counted once
  std::uint64_t other_callers = 0;  ///< calls that ranks reached from different callers
  Histogram imbalance, after_last, factor_milli;
  Spread waits;                                    ///< of the sum of all ranks' waits
  RankRows ranks;                                  ///< by rank in MPI_COMM_WORLD divided by ranks_per_row
  std::map<std::uint8_t, DispatchStats> dispatch;  ///< by CallRecord::algorithm
  PatternSource history, edge;
  /// Whether its figures are estimates, because some epochs were not logged.
  bool estimated() const { return logged < calls; }
  /// The calls that are certain to have been made. `counted`: whether the ranks' own counts are valid, so that an
  /// estimate is of no use.
  std::uint64_t calls_seen(bool counted) const { return counted ? logged : calls; }
  /// A number of `calls`, as one of `exact` calls.
  std::uint64_t share_of_calls(std::uint64_t number, std::uint64_t exact) const {
    if (!estimated()) return number;
    return static_cast<std::uint64_t>(static_cast<double>(number) / static_cast<double>(calls) *
                                      static_cast<double>(exact));
  }
  void merge(const PatternSite& other);
};

/// The first call of several ranks with records of all of them. The ranks wait there for the set-up of the program.
struct FirstCall {
  Nanoseconds arrival = INT64_MAX;  ///< the first arrival; INT64_MAX: no call is known
  double waited_ns = 0;             ///< waits of all ranks
  double awaited_ns = 0;            ///< the part of them that was for `awaited`
  Rank awaited = -1;                ///< the rank that the others waited for most; -1: no rank waited
  std::uint64_t site = 0;           ///< SiteKey::number()
};

/// The accumulated sites of a process, or of all processes after merging. The leader of a communicator adds each call
/// once, and every rank adds its own part of the call.
class SiteBook {
 public:
  /// Leader: adds a call of which all records are known. The call counts for the site of the root, or else of the first
  /// rank. `network` is nullptr if the figures are unknown.
  void add_call(const CallDigest& call, const Members& members, const CallFacts& facts, const core::Network* network,
                const StandsFor& stands_for = {});
  /// Adds the part of rank `rank` of a communicator of `size` ranks; `own`: its rank in MPI_COMM_WORLD. Returns the
  /// sums for the leader.
  CallSums add_own(const CallRecord& record, const CallFacts& facts, Rank rank, Rank own, std::int32_t size,
                   const StandsFor& stands_for = {});
  /// Leader: adds the sums of all ranks.
  void add_awaited(const CallDigest& call, const Members& members, const CallFacts& facts, const CallSums& all,
                   const StandsFor& stands_for = {});
  /// Leader: adds the waits of a scan, in which each rank may wait for a different rank. Ignores other collectives.
  /// of_arrivals: [comm_size].
  void add_scan(const CallDigest& call, const Members& members, std::span<const Nanoseconds> of_arrivals,
                const StandsFor& stands_for = {});
  /// Adds one call with the records of all ranks, by the functions above. records[i] belongs to world rank world[i];
  /// shape [comm_size]. Arrivals that differ by less than `tie_ns` count as equal. `counted`: ranks whose own part was
  /// added before, [comm_size] or empty. Returns whether ranks called from different sites.
  bool add(std::span<const CallRecord* const> records, std::span<const Rank> world, Nanoseconds tie_ns,
           const core::Network* network, std::span<const char> counted = {});
  void merge(const SiteKey& key, const PatternSite& site) { at(key).merge(site); }
  void merge(const SiteBook& other);
  const std::map<SiteKey, PatternSite>& sites() const { return sites_; }
  /// Returns all sites, and empties the book.
  std::map<SiteKey, PatternSite> release() {
    caller_rows_ = 0;
    latest_ = {};
    return std::exchange(sites_, {});
  }
  /// Sets the size of MPI_COMM_WORLD, which determines the ranks per row. Must precede the first add().
  void job_of(int ranks) {
    ranks_ = ranks;
    per_row_ = ranks_per_row(ranks);
  }
  /// Keeps the arrivals of single calls from now on.
  void record_arrivals() { records_ = true; }
  bool records_arrivals() const { return records_; }
  /// Keeps the arrivals of one call, and counts the call nowhere. The arguments are those of add().
  void record(std::span<const CallRecord* const> records, std::span<const Rank> world);
  /// Keeps the arrivals of one call, and counts the call nowhere. Both times: [comm_size].
  void record(const ArrivalRecord::Kind& kind, std::span<const Nanoseconds> of_arrivals,
              std::span<const Nanoseconds> exits);
  PatternSite& at(SiteKey key);

  Groups groups;
  ArrivalRecord arrivals;
  SumsByRank sums;
  FirstCall first_call;

 private:
  PatternSite& site_at(const SiteKey& key);
  void add_wait(PatternSite& site, const Members& members, Nanoseconds first, Rank awaited, double ns);

  std::map<SiteKey, PatternSite> sites_;
  /// The entry of the latest call, since calls of one site often follow each other. Entries of a map stay in place.
  /// A copy of the book has entries of its own, so it forgets this one.
  struct Latest {
    SiteKey key;
    PatternSite* site = nullptr;
    Latest() = default;
    Latest(const Latest&) {}
    Latest& operator=(const Latest& other) {
      if (this != &other) site = nullptr;
      return *this;
    }
  } latest_;
  std::size_t caller_rows_ = 0;  ///< rows of ranks of entries with callers
  int ranks_ = 1, per_row_ = 1;
  bool records_ = false;
};

/// The function of a frame that is in no module.
inline constexpr char kGeneratedCode[] = "generated code";

/// A stack frame of a call site or of its callers, as the observing process identified it. Several frames are in order,
/// innermost first.
struct Frame {
  std::uint64_t site = 0;
  std::string module, build_id;
  std::uint64_t offset = 0;    ///< return address, in the module's own addresses
  std::string function, file;  ///< set only if the process knows them: Python, dynamic symbols
  std::int32_t line = 0;
  std::uint32_t callers = 0;  ///< 0: a frame of the site itself; else a frame of its callers with this hash
  static auto members(auto& f) {
    return std::tie(f.site, f.callers, f.module, f.build_id, f.offset, f.function, f.file, f.line);
  }
};

/// A few bytes of a function's code, or all of a function: the latter lies at the function's begin.
struct CodePlace {
  Frame frame;              ///< its `site` is the same on every rank. Offset 0: a whole module
  std::uint64_t start = 0;  ///< offset of the function; 0: not known
  std::uint64_t whole = 0;  ///< `frame.site` of the whole function
  static auto members(auto& p) { return std::tie(p.frame, p.start, p.whole); }
};

/// A rule of the policy that names an algorithm for an operation.
struct ForcedRule {
  std::int32_t algorithm = -1;  ///< index in the catalogue
  std::int32_t line = 0;
  core::Range bytes, comm_size;
};

/// The source of the network figures: none, the policy, or a measurement in MPI_Init (start) or MPI_Finalize (end).
enum class NetworkFrom : std::uint8_t { none, policy, start, end };

/// How a job has used the results of an earlier run.
struct HistoryUse {
  std::string file;         ///< file with the results; "": the policy names none
  std::string why_not;      ///< why the job did not use the plan in the file; "": it did
  std::uint64_t calls = 0;  ///< calls on MPI_COMM_WORLD that this plan served
};

/// The head of a profile: data about its job.
struct JobInfo {
  std::string program, command_line, start, mpi_library, mode;
  std::int32_t ranks = 0;
  double wall_time_s = 0;
  NetworkFrom network_from = NetworkFrom::none;
  bool record_arrivals = false;
  core::Network network;
  core::Promised promised{};
  std::vector<ForcedRule> forced{};  ///< in mode apply only
  HistoryUse history{};
};

/// Records of one member that no leader has processed. The profile writer matches them with those of the other members.
struct Log {
  std::uint64_t communicator = 0;  ///< identity of the communicator, equal on all members; 0: unknown
  std::int32_t comm_size = 0, comm_rank = 0;
  Rank world_rank = 0;      ///< rank in MPI_COMM_WORLD of the member that wrote the log
  std::uint64_t first = 0;  ///< call number of the first record
  std::vector<CallRecord> records;
  bool counted = false;  ///< the member has counted its own part of these calls
  static auto members(auto& l) {
    return std::tie(l.communicator, l.comm_size, l.comm_rank, l.world_rank, l.first, l.counted, l.records);
  }
};
/// A Log that is still being written.
struct LiveLog {
  std::uint64_t communicator;
  std::int32_t comm_size, comm_rank;
  Rank world_rank;
  std::uint64_t first;
  std::span<const CallRecord> records;
  bool counted = false;
  static auto members(auto& l) { return Log::members(l); }
};

/// Calls for which a rule names an algorithm whose plan is too large to make inside a call.
struct Unplanned {
  std::int32_t algorithm = -1;  ///< index in the catalogue
  std::int32_t instead = -1;    ///< algorithm of the last such call; -1: native
  std::uint64_t calls = 0;
  std::int64_t messages = 0;  ///< messages of the largest plan among these calls
};

/// The cores of a process, and the time of its main thread from the start of MPI to the end.
struct Process {
  Usage usage;
  Peers peers;                  ///< the ranks whose messages were waited for in `usage.messages`, where they are known
  std::int32_t cores = 0;       ///< number of cores that the process may use
  std::int32_t host_cores = 0;  ///< number of cores of its host
  std::string core_list;        ///< the numbers of the cores that the process may use, such as "0-3,8"
  bool courteous = false;       ///< the process gives its core away while it waits
  Costs cost;                   ///< what latecomer took from it
  Nanoseconds init = 0;         ///< time in MPI_Init; 0: unknown. It is not in `usage`
  Nanoseconds ended = 0;        ///< the process entered MPI_Finalize then, by the common clock; 0: it did not
  Nanoseconds unlogged = 0;     ///< time of epochs that were not logged, and that no logged one stands for
  /// Calls of the main thread whose times are in `usage.messages`, and those of them that were timed.
  std::uint64_t message_calls = 0, message_calls_timed = 0;
  Nanoseconds messages_error = 0;   ///< standard error of `usage.messages`
  std::vector<ThreadSums> threads;  ///< of the threads that did not start MPI, and call it
  Nanoseconds all_inside = 0;  ///< time for which all threads that call MPI were inside at once; 0: one thread does
  Sampling sampling;
  static auto members(auto& p) {
    return std::tie(p.usage, p.peers, p.cores, p.host_cores, p.courteous, p.cost, p.init, p.ended, p.unlogged,
                    p.message_calls, p.message_calls_timed, p.messages_error, p.core_list, p.threads, p.all_inside,
                    p.sampling);
  }
};

/// Everything that one process contributes to a profile. Rank 0 receives it at the end; the spool keeps it on disk
/// while the job runs.
struct Contribution {
  JobInfo job;
  std::uint64_t job_key = 0;  ///< the same on all ranks of a job; 0: the roll call failed
  bool finished = false;      ///< the process reached MPI_Finalize
  Nanoseconds aborted = 0;    ///< time of MPI_Abort since the start of MPI, from a snapshot; 0: none; not serialized
  Rank rank = 0;
  std::string host, clock_domain;
  Nanoseconds clock_offset = 0, clock_uncertainty = 0;  ///< uncertainty -1: never compared with other clock domains
  std::int32_t clock_looks = 0;
  Process process;
  std::vector<Frame> frames;
  LocalBook local;
  SiteBook patterns;
  std::uint64_t edges = 0;  ///< number of calls of latecomer_edge
  double edge_sum = 0;      ///< sum of their fractions
  std::vector<Unplanned> unplanned;
  std::vector<TimedSite> timed_sites;   ///< those of the main thread first; empty in Merged::sum
  std::vector<StreamEnd> message_ends;  ///< of a process that has finished; empty in Merged::sum
  std::vector<CodePlace> places;        ///< of `code`; empty in Merged::sum
  std::vector<CodeSamples> code;        ///< of a process that has not finished, some; empty in Merged::sum
  std::vector<Stretch> stretches;       ///< empty in Merged::sum
  std::vector<HostLoad> loads;          ///< of this host, if this process measures it
  NotCounted not_counted;               ///< without the kinds that the local sites tell
  std::vector<PeerSums> peers;          ///< of the main thread, those that are not zero; empty in Merged::sum
  std::vector<std::string> warnings;
  std::vector<Log> logs;
  CallSample sample;                   ///< of the calls on MPI_COMM_WORLD, where all ranks keep one
  std::vector<std::string> plans;      ///< JSON texts of the plans that this process made as a leader
  std::vector<std::string> decisions;  ///< JSON texts of its latest decisions, one per slot (decisions.hpp)
  std::string learned;                 ///< JSON text of the winners on MPI_COMM_WORLD (history.hpp); "": none

  /// Replaces `out`. Allocates only if `out` has to grow.
  void serialize(std::string& out, std::span<const LiveLog> live = {}) const;
  static bool deserialize(std::string_view bytes, Contribution& out);
};

/// The hash that identifies a frame, from its build-id (or the module's name) and offset.
std::uint64_t site_hash(std::string_view build_id, std::string_view module, std::uint64_t offset);

}  // namespace latecomer::profiles

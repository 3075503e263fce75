// SPDX-License-Identifier: BSD-3-Clause
// What is recorded per call and accumulated per call site. The seam between the shim, which fills it,
// and everything that reads a profile. Knows nothing of MPI.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/collective/collective.hpp"
#include "core/network/network.hpp"
#include "core/policy/policy.hpp"
#include "profiles/histogram.hpp"

namespace latecomer::profiles {

using core::Bytes;
using core::Nanoseconds;
using core::Rank;

/// One collective call as one rank saw it. Sent between ranks as it lies in memory.
struct CallRecord {
  Nanoseconds arrival = 0;  ///< on the job's common clock
  Nanoseconds exit = 0;     ///< 0: not seen (a non-blocking call whose completion was not)
  std::uint64_t site = 0;   ///< hash of build-id and offset of the calling frame; 0: unknown
  std::int64_t bytes =
      -1;  ///< INTERFACE's `bytes`; -1: not known on every rank; gatherv, scatterv: of this rank's block
  std::int32_t root = -1;
  core::Collective op = core::Collective::barrier;
  core::CallKind kind = core::CallKind::blocking;
  std::uint8_t algorithm = 0;  ///< 0: native, else 1 + index in the catalogue
  std::uint8_t edge = 0;       ///< kSaid, kRanByEdge
  std::int32_t expected =
      -1;  ///< by the pattern that it ran on: this rank after the first arrival, in kExpectedUnit; -1: no pattern
  std::int32_t unused = 0;
};
static_assert(sizeof(CallRecord) == 48);
/// The process had said how far it was (latecomer_edge); the call ran on a pattern of its own, made from what ranks had
/// said.
inline constexpr std::uint8_t kSaid = 1, kRanByEdge = 2;
inline constexpr Nanoseconds kExpectedUnit = 100;

/// A row of the report: one place in the program, one collective, one communicator size.
struct SiteKey {
  std::uint64_t site = 0;
  core::Collective op = core::Collective::barrier;
  std::int32_t comm_size = 0;
  auto operator<=>(const SiteKey&) const = default;
  /// 16 hexadecimal digits; the same on every rank and in every run of the same binaries.
  std::string id() const;
};

/// What one rank knows by itself.
struct LocalSite {
  std::uint64_t calls = 0;
  std::uint64_t rested = 0;  ///< those of epochs that were not logged; native
  std::int64_t bytes_min = INT64_MAX, bytes_max = INT64_MIN;
  double bytes_sum = 0;
  std::uint64_t sized = 0;  ///< calls with a known size
  Histogram elapsed;
  /// `spent`: from arrival to exit, -1 if the exit was not seen. `bytes`: -1 if unknown.
  void add(Nanoseconds spent, Bytes bytes, bool rests = false) {
    ++calls;
    rested += rests;
    if (spent >= 0) elapsed.add(spent);
    if (bytes < 0) return;
    bytes_min = std::min(bytes_min, bytes);
    bytes_max = std::max(bytes_max, bytes);
    bytes_sum += static_cast<double>(bytes);
    ++sized;
  }
  /// So many native calls that were not logged, `with_size` of them of known sizes, and nobody looked at how long they
  /// took.
  void add_rested(std::uint64_t so_many, std::uint64_t with_size, Bytes least, Bytes most, double sum) {
    calls += so_many, rested += so_many, sized += with_size, bytes_sum += sum;
    bytes_min = std::min(bytes_min, least), bytes_max = std::max(bytes_max, most);
  }
  void merge(const LocalSite& other);
};

/// The local sites of one process, found in a few nanoseconds: open addressing over entries that never move.
class LocalBook {
 public:
  struct Entry {
    SiteKey key;
    LocalSite site;
  };
  /// The entry of that key, made if it is new. Beyond kMostSites new keys share the entry of site 0.
  LocalSite& operator[](const SiteKey& key);
  const std::deque<Entry>& entries() const { return entries_; }

 private:
  std::deque<Entry> entries_;
  std::vector<std::uint32_t> index_;  // 1 + position in entries_; 0: free
};

/// Calls that wait to be counted. A site's counters are asked for when the call is queued and touched when
/// they have come: with many sites the misses overlap instead of delaying every call.
class LocalQueue {
 public:
  void add(LocalSite* site, Nanoseconds spent, Bytes bytes, bool rests) {
    __builtin_prefetch(site, 1);
    __builtin_prefetch(reinterpret_cast<const char*>(site) + 64, 1);
    if (count_ == kMost) drain();
    queue_[count_++] = {site, spent, bytes, rests};
  }
  [[gnu::noinline]] void drain() {
    for (int i = 0; i < count_; ++i) queue_[i].site->add(queue_[i].spent, queue_[i].bytes, queue_[i].rests);
    count_ = 0;
  }

 private:
  static constexpr int kMost = 32;
  struct Waiting {
    LocalSite* site;
    Nanoseconds spent;
    Bytes bytes;
    bool rests;
  };
  int count_ = 0;
  Waiting queue_[kMost];
};

/// Memory of a process is bounded: so many site keys, then everything new is one. 1.5 KiB each, and for
/// the leader of a communicator 320 bytes per rank or group of ranks (at most kMostRows of them).
inline constexpr std::size_t kMostSites = 4096;
/// The profile holds so many sites, the rest as one, and per site so many rows of ranks (INTERFACE.md).
inline constexpr std::size_t kMostSitesWritten = 1000;
inline constexpr int kMostRows = 4096;
/// Ranks that share a row in a job of so many.
constexpr int ranks_per_row(int ranks) { return (ranks + kMostRows - 1) / kMostRows; }

/// One row of ranks: one rank, or a group of neighbours in jobs of more than kMostRows ranks.
struct RankOffsets {
  Histogram offset;              ///< arrivals after the first arrival
  std::uint64_t last_count = 0;  ///< times a rank of the row came last
};

/// Rows by number, ascending. Calls of one communicator touch the same rows in the same order, so a guess
/// finds each at once.
class RankRows {
 public:
  using Row = std::pair<std::int32_t, RankOffsets>;
  RankOffsets& at_or_new(std::int32_t row, std::size_t guess);
  const RankOffsets& at(std::int32_t row) const;
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<Row> rows_;
};

struct DispatchStats {
  std::uint64_t calls = 0;
  double elapsed_sum = 0;  ///< mean elapsed time of each call, summed
  double after_last_sum = 0;
};

/// Calls that ran on patterns of one source, and how far off these were: in the mean over ranks, summed over calls.
struct PatternSource {
  std::uint64_t calls = 0;
  double error_sum_ns = 0;
};

/// What exact arrival patterns told about a site.
struct PatternSite {
  std::uint64_t calls = 0, divergent_calls = 0;
  Histogram imbalance, after_last, factor_milli;
  RankRows ranks;                                  ///< by rank in MPI_COMM_WORLD over ranks_per_row
  std::map<std::uint8_t, DispatchStats> dispatch;  ///< by CallRecord::algorithm
  PatternSource history, edge;
  void merge(const PatternSite& other);
};

/// All that is accumulated, on a leader or merged at the end.
class SiteBook {
 public:
  /// One call of which every rank's record is there: records[i] belongs to world rank world[i]; shape
  /// [comm_size]. `tie_ns`: arrivals closer than this count as equal. The call is credited to the root's
  /// site, or to the first rank's. network: nullptr if no figures are known. Returns whether ranks came from
  /// different sites.
  bool add(std::span<const CallRecord* const> records, std::span<const Rank> world, Nanoseconds tie_ns,
           const core::Network* network);
  void merge(const SiteKey& key, const PatternSite& site) { at(key).merge(site); }
  const std::map<SiteKey, PatternSite>& sites() const { return sites_; }
  /// Ranks in MPI_COMM_WORLD, which decides how many share a row. Before the first call.
  void job_of(int ranks) { per_row_ = ranks_per_row(ranks); }
  PatternSite& at(const SiteKey& key);

 private:
  std::map<SiteKey, PatternSite> sites_;
  int per_row_ = 1;
};

/// A frame of a call site, as the process that saw it could name it. A site of several frames has several,
/// innermost first.
struct Frame {
  std::uint64_t site = 0;
  std::string module, build_id;
  std::uint64_t offset = 0;    ///< of the return address, in the module's own addresses
  std::string function, file;  ///< where the process itself knows them (Python)
  std::int32_t line = 0;
};

/// A rule of the policy that names an algorithm for an operation.
struct ForcedRule {
  std::int32_t algorithm = -1;  ///< index in the catalogue
  std::int32_t line = 0;
  core::Range bytes, comm_size;
};

/// What the head of a profile says of its job.
struct JobInfo {
  std::string program, command_line, start, mpi_library, mode;
  std::int32_t ranks = 0;
  double wall_time_s = 0;
  bool network_known = false;
  core::Network network;
  std::vector<ForcedRule> forced;  ///< in mode apply
};

/// Logs that no leader has processed, to be matched with those of the other members.
struct Log {
  std::uint64_t communicator = 0;  ///< identity, equal on all members
  std::int32_t comm_size = 0, comm_rank = 0;
  Rank world_rank = 0;      ///< of the member that wrote it
  std::uint64_t first = 0;  ///< number of the first record
  std::vector<CallRecord> records;
};
/// The same, still being written.
struct LiveLog {
  std::uint64_t communicator;
  std::int32_t comm_size, comm_rank;
  Rank world_rank;
  std::uint64_t first;
  std::span<const CallRecord> records;
};

/// Calls for which a rule asks for an algorithm whose planning takes too long inside a call.
struct Unplanned {
  std::int32_t algorithm = -1;  ///< index in the catalogue
  std::int32_t instead = -1;    ///< what ran, in the last of them; -1: native
  std::uint64_t calls = 0;
  std::int64_t messages = 0;  ///< of the largest of their plans
};

/// Everything one process contributes to a profile: what travels to rank 0 at the end, and what lies on
/// disk while the job runs.
struct Contribution {
  JobInfo job;
  std::uint64_t job_key = 0;  ///< the same on all ranks of a job; 0: the ranks never met
  bool finished = false;      ///< the process came to its end
  Rank rank = 0;
  std::string host, clock_domain;
  Nanoseconds clock_offset = 0, clock_uncertainty = 0;  ///< uncertainty -1: never compared with other domains
  std::int32_t clock_looks = 0;
  std::vector<Frame> frames;
  LocalBook local;
  SiteBook patterns;
  std::uint64_t edges = 0;  ///< times the program said how far it was
  double edge_sum = 0;      ///< of the fractions it gave
  std::vector<Unplanned> unplanned;
  std::vector<std::string> warnings;
  std::vector<Log> logs;
  std::vector<std::string> plans;      ///< JSON texts of the plans this process made as a leader
  std::vector<std::string> decisions;  ///< JSON texts of what it decided last, per slot (decisions.hpp)

  /// Replaces `out`; allocates only if `out` has to grow.
  void serialize(std::string& out, std::span<const LiveLog> live = {}) const;
  static bool deserialize(std::string_view bytes, Contribution& out);
};

/// The hash that stands for a frame: of build-id (or module name) and offset.
std::uint64_t site_hash(std::string_view build_id, std::string_view module, std::uint64_t offset);

}  // namespace latecomer::profiles

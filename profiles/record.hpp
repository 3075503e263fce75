// SPDX-License-Identifier: BSD-3-Clause
// What is recorded per call and accumulated per call site. The seam between the shim, which fills it,
// and everything that reads a profile. Knows nothing of MPI.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/types.hpp"
#include "core/model/network.hpp"
#include "profiles/histogram.hpp"

namespace latecomer::profiles {

using core::Bytes;
using core::Nanoseconds;
using core::Rank;

/// One collective call as one rank saw it. Sent between ranks as it lies in memory.
struct CallRecord {
  Nanoseconds arrival = 0;      ///< on the job's common clock
  Nanoseconds exit = 0;         ///< 0: not seen (a non-blocking call whose completion was not)
  std::uint64_t site = 0;       ///< hash of build-id and offset of the calling frame; 0: unknown
  std::int64_t bytes = -1;      ///< INTERFACE's `bytes`; -1: not known on every rank
  std::int32_t root = -1;
  core::Collective op = core::Collective::barrier;
  core::CallKind kind = core::CallKind::blocking;
  std::uint8_t algorithm = 0;   ///< 0: native, else 1 + index in the catalogue
  std::uint8_t reserved = 0;
};
static_assert(sizeof(CallRecord) == 40);

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
  std::int64_t bytes_min = 0, bytes_max = 0;
  double bytes_sum = 0;
  std::uint64_t sized = 0;   ///< calls with a known size
  Histogram elapsed;
  void add(const CallRecord& call);
  void merge(const LocalSite& other);
};

struct RankOffsets {
  Histogram offset;             ///< arrival after the first arrival
  std::uint64_t last_count = 0; ///< times this rank came last
};

struct DispatchStats {
  std::uint64_t calls = 0;
  double elapsed_sum = 0;       ///< mean elapsed time of each call, summed
  double after_last_sum = 0;
};

/// What exact arrival patterns told about a site.
struct PatternSite {
  std::uint64_t calls = 0, divergent_calls = 0;
  Histogram imbalance, after_last, factor_milli;
  std::map<Rank, RankOffsets> ranks;             ///< by rank in MPI_COMM_WORLD
  std::map<std::uint8_t, DispatchStats> dispatch;  ///< by CallRecord::algorithm
  void merge(const PatternSite& other);
};

/// All that is accumulated, on a leader or merged at the end.
class SiteBook {
 public:
  /// One call of which every rank's record is there: records[i] belongs to world rank world[i]; shape
  /// [comm_size]. `tie_ns`: arrivals closer than this count as equal. The call is credited to the root's
  /// site, or to the first rank's. network: nullptr if no figures are known.
  void add(std::span<const CallRecord* const> records, std::span<const Rank> world, Nanoseconds tie_ns,
           const core::Network* network);
  void merge(const SiteKey& key, const PatternSite& site) { sites_[key].merge(site); }
  const std::map<SiteKey, PatternSite>& sites() const { return sites_; }

 private:
  std::map<SiteKey, PatternSite> sites_;
};

/// A call site's frame, as the process that saw it could name it.
struct Frame {
  std::uint64_t site = 0;
  std::string module, build_id;
  std::uint64_t offset = 0;  ///< of the return address, in the module's own addresses
};

/// Everything one process contributes to a profile. Serialised to travel to rank 0.
struct Contribution {
  Rank rank = 0;
  std::string host;
  Nanoseconds clock_offset = 0, clock_uncertainty = 0;
  std::vector<Frame> frames;
  std::map<SiteKey, LocalSite> local;
  std::map<SiteKey, PatternSite> patterns;
  std::vector<std::string> warnings;

  /// Logs that no leader has processed, to be matched with those of the other members.
  struct Log {
    std::uint64_t communicator = 0;  ///< identity, equal on all members
    std::int32_t comm_size = 0, comm_rank = 0;
    Rank world_rank = 0;             ///< of the member that wrote it
    std::uint64_t first = 0;         ///< number of the first record
    std::vector<CallRecord> records;
  };
  std::vector<Log> logs;
  std::vector<std::string> plans;  ///< JSON texts of the plans this process made as a leader

  std::string serialize() const;
  static bool deserialize(std::string_view bytes, Contribution& out);
};

/// The hash that stands for a frame: of build-id (or module name) and offset.
std::uint64_t site_hash(std::string_view build_id, std::string_view module, std::uint64_t offset);

}  // namespace latecomer::profiles

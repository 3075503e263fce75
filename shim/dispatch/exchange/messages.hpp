// SPDX-License-Identifier: BSD-3-Clause
// The messages between the leader and the members of a communicator, and a wait for one.
#pragma once

#include <vector>

#include "shim/dispatch/exchange/exchange.hpp"
#include "shim/patience.hpp"

namespace latecomer::shim {
namespace exchange {

/// Records that are kept until the end of the job. Derived: 65,536 records of 48 bytes take 3 MiB per rank. Beyond, a
/// log is dropped: its calls have no arrival patterns, and a warning at the end gives their number.
inline constexpr std::size_t kRetainedRecords = 1 << 16;

struct Header {
  std::uint64_t identity = 0;
  std::uint64_t first = 0;  // log: number of the first record; plan: the announcing call
  std::uint32_t count = 0;  // log: records; plan: Learner::Announcement::Kind
  std::int32_t comm_rank = 0, comm_size = 0;
  std::uint32_t rest = 0;       // plan: whether it begins an idle epoch
  std::uint64_t epoch = 0;      // plan: number of calls of that epoch
  Nanoseconds uncertainty = 0;  // of the sender's clock
  Nanoseconds waited = 0;       // log: time of waits for the leader since the last log
};

/// A wait for other ranks at a boundary.
class BoundaryWait {
 public:
  /// `rooted`: the communicator has rooted calls only. A program that relies on gathers not to synchronize would hang
  /// in this wait, so it warns once after 10 s.
  BoundaryWait(const CommState& state, bool rooted) : state_(state), silent_(!rooted) {}
  /// Waits a little.
  void again();
  Nanoseconds so_far() const { return now() - begin_; }

 private:
  const CommState& state_;
  Patience patience_{job().courteous};
  Nanoseconds begin_ = now();
  unsigned turns_ = 0;
  bool silent_;
};

/// Sends a message without waiting. See shim::post.
bool post(Rank world, int tag, const Header& header, const void* data, std::size_t size, bool may_refuse);

/// Takes a message of that tag from that rank, if one has arrived. Drops messages of other identities.
bool take(Rank world, int tag, std::uint64_t identity, Header& header, std::vector<char>& body);

/// The records of a log.
void records_in(const Header& header, const std::vector<char>& body, std::vector<profiles::CallRecord>& records);

}  // namespace exchange
}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// Notices: messages by which a rank tells an engine that a call has begun (engine.hpp). This file sends and receives
// them. It must not know how the engine uses a notice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <vector>

#include "core/base/types.hpp"
#include "shim/mpi/api.hpp"

namespace latecomer::shim {

using core::Rank;

struct Notice {
  std::uint64_t identity, n, plan_hash;
  std::int64_t count;
  std::int32_t algorithm, segments, pattern, root;
  std::uint8_t overlap, commutative, pad[6];
  core::Bytes element_bytes;
};
static_assert(sizeof(Notice) == 64);

class Notices {
 public:
  /// `comm`: private, with the `ranks` ranks of MPI_COMM_WORLD.
  Notices(MPI_Comm comm, int ranks) : comm_(comm), sent_(static_cast<std::size_t>(ranks), 0) {}

  /// Posts the receive of the next notice. Call this function once at the start; then finish_messages() must follow.
  void expect_notice();

  /// Sends a notice to a world rank without waiting. Drops the notice if kOutgoing notices are under way: then the
  /// receiving process does its part when it arrives. Thread-safe.
  void send_notice(const Notice& notice, Rank to);
  /// Takes a notice that has arrived. Returns false if none has. For one thread at a time.
  bool take_notice(Notice& notice);

  /// The number of notices sent to each world rank. Valid once no thread sends any more.
  const std::vector<int>& sent() const { return sent_; }
  /// At the end, when no notice is on its way to this rank: completes every send and the last receive.
  void finish_messages();

 private:
  /// Derived: 4,096 list nodes of 88 bytes take 352 KiB per rank.
  static constexpr std::size_t kOutgoing = 4096;
  struct Outgoing {
    Notice notice;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  MPI_Comm comm_;
  Notice notice_{};
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::mutex mutex_;
  std::list<Outgoing> outgoing_;
  std::vector<int> sent_;
};

}  // namespace latecomer::shim

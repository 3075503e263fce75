// SPDX-License-Identifier: BSD-3-Clause
// Says for whose messages a call waited, in ranks of MPI_COMM_WORLD, in sampled intervals. A communicator is used only
// inside a call that names it: a program may free one while its messages are in transfer.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "shim/causes/usage.hpp"
#include "shim/mpi.hpp"

namespace latecomer::shim {

/// A call waited for a message of that rank of `comm`, or until that rank received one. No rank, as MPI_PROC_NULL, is
/// ignored.
void waited_for(MPI_Comm comm, int rank, Nanoseconds waited);

/// A non-blocking message to or from that rank of `comm` was started in a sampled interval, or a persistent one was
/// made.
void note_started(MPI_Request request, MPI_Comm comm, int rank, bool receives, bool persistent);

/// The message of a request.
struct StartedMessage {
  MPI_Request request = MPI_REQUEST_NULL;
  std::uint32_t interval = 0;  ///< in which it was started; 0: it is persistent
  Rank peer = -1;              ///< in MPI_COMM_WORLD
  bool receives = false;
};

/// Messages by their request's handle. MPI numbers its handles, so the low bits rarely meet. A message whose place
/// another one has taken waits for no rank. Derived: 1,024 places of 16 bytes take 16 KiB per process.
class StartedMessages {
 public:
  void note(const StartedMessage& message) { place(message.request) = message; }
  /// nullptr: not noted, or overwritten. `interval`: the present one.
  const StartedMessage* find(MPI_Request request, std::uint32_t interval) {
    const StartedMessage& there = place(request);
    const bool known = request != MPI_REQUEST_NULL && there.request == request;
    return known && (there.interval == 0 || there.interval == interval) ? &there : nullptr;
  }

 private:
  static constexpr std::size_t kPlaces = 1024;
  StartedMessage& place(MPI_Request request) {
    std::uintptr_t bits = 0;
    std::memcpy(&bits, &request, sizeof request);
    return places_[bits % kPlaces];
  }
  StartedMessage places_[kPlaces];
};
/// The messages among the requests of a completion call, as they were before it.
class Awaited {
 public:
  Awaited(int count, const MPI_Request* requests);
  /// The call waited until all of them were complete.
  void all(Nanoseconds waited) const;
  /// The call waited until that one was complete.
  void one(Nanoseconds waited, int index) const;

 private:
  static constexpr int kMost = 256;  // as for observed requests: 5 KiB of the stack, in sampled intervals only
  int found_ = 0, receives_ = 0;
  int at_[kMost];
  StartedMessage messages_[kMost];
};

}  // namespace latecomer::shim

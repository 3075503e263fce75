// SPDX-License-Identifier: BSD-3-Clause
// Says for whose messages a call waited, in ranks of MPI_COMM_WORLD. The start of a non-blocking message notes its
// communicator and rank, with two stores. Only waits in sampled intervals are looked up.
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

/// The message of a request: from or to `rank` of `comm`, which may be MPI_ANY_SOURCE.
struct StartedMessage {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = MPI_PROC_NULL;
  bool receives = false;
};

/// Messages by their request's handle. MPI numbers its handles, so the low bits rarely meet. A message whose place
/// another one has taken waits for no rank. Derived: 1,024 places of 16 bytes take 16 KiB per process.
class StartedMessages {
 public:
  void note(const StartedMessage& message) { place(message.request) = message; }
  /// nullptr: not noted, or overwritten.
  const StartedMessage* find(MPI_Request request) {
    const StartedMessage& there = place(request);
    return request != MPI_REQUEST_NULL && there.request == request ? &there : nullptr;
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
extern constinit StartedMessages started;

/// The messages among the requests of a completion call, as they were before it.
class Awaited {
 public:
  Awaited(int count, const MPI_Request* requests);
  /// The call waited until all of them were complete, or until that one. `statuses`: of all requests, nullptr if the
  /// program ignores them.
  void all(Nanoseconds waited, const MPI_Status* statuses) const;
  void one(Nanoseconds waited, int index, const MPI_Status* status) const;

 private:
  static constexpr int kMost = 256;  // as for observed requests: 5 KiB of the stack, in sampled intervals only
  int found_ = 0, receives_ = 0;
  int at_[kMost];
  StartedMessage messages_[kMost];
};

}  // namespace latecomer::shim

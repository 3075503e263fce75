// SPDX-License-Identifier: BSD-3-Clause
// Says for whose messages a call waited, in ranks of MPI_COMM_WORLD, on the thread that started MPI. A communicator is
// used only inside a call that names it: a program may free one while its messages are in transfer.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "shim/causes/usage.hpp"
#include "shim/mpi/api.hpp"

namespace latecomer::shim {

/// A call waited for a message of that rank of `comm`, or until that rank received one. No rank, as MPI_PROC_NULL, is
/// ignored.
void waited_for(MPI_Comm comm, int rank, Nanoseconds waited);

/// The message of a request.
struct StartedMessage {
  MPI_Request request{};
  Rank peer = -1;  ///< in MPI_COMM_WORLD; negative: none
  bool receives = false, persistent = false;
};

/// Messages by their request's handle. MPI numbers its handles, so the low bits rarely meet. A message whose place
/// another one has taken waits for no rank. Derived: 1,024 places of 16 bytes take 16 KiB per process.
class StartedMessages {
 public:
  void note_message(const StartedMessage& message) { place(message.request) = message; }
  /// nullptr: not noted, or overwritten.
  StartedMessage* find_message(MPI_Request request) {
    StartedMessage& there = place(request);
    return request != MPI_REQUEST_NULL && there.request == request ? &there : nullptr;
  }
  /// MPI may use the handle for another request from now on.
  void forget_message(MPI_Request request) {
    if (StartedMessage* there = find_message(request)) there->request = {};
  }
  /// Messages that a call completes without looking for whom it waits.
  void forget_completed(int count, const MPI_Request* requests) {
    for (int i = 0; i < count; ++i)
      if (StartedMessage* there = find_message(requests[i]); there && !there->persistent) there->request = {};
  }

 private:
  static constexpr std::size_t kPlaces = 1024;
  StartedMessage& place(MPI_Request request) {
    const std::uintptr_t bits = bits_of(request);  // of an object's address, the low bits are zero
    return places_[(bits ^ bits >> 10) % kPlaces];
  }
  StartedMessage places_[kPlaces];
};
extern constinit StartedMessages started_messages;

/// The communicator whose ranks were translated last. The translation lives as long as the communicator.
extern constinit std::atomic<MPI_Comm> translated;
/// Call this function before a communicator ends.
inline void forget_translation() { translated.store({}, std::memory_order_relaxed); }

/// The rank in MPI_COMM_WORLD of a rank of `comm`. Negative if the process is of another job, or outside `comm`.
Rank peer_of(MPI_Comm comm, int rank);

/// Notes a non-blocking message to or from a rank of `comm` that was started, or a persistent one that was made.
inline void note_started(MPI_Request request, MPI_Comm comm, int rank, bool receives, bool persistent) {
  started_messages.note_message({request, peer_of(comm, rank), receives, persistent});
}

/// The messages among the requests of a completion call, as they were before the call.
class Awaited {
 public:
  /// `completes`: false if the call only looks at the requests, which stay as they are.
  Awaited(int count, const MPI_Request* requests, bool completes = true);
  /// Sets the time of the call; 0: the call did not wait.
  void set_wait(Nanoseconds time) { waited_ = time; }
  /// All messages are complete: the call waited for all of them.
  void complete_all() const;
  /// The message of the request with this index is complete.
  void complete_one(int index) const;

 private:
  static constexpr int kMost = 256;  // as for observed requests: 6 KiB of the stack
  struct Message {
    StartedMessage* started;
    MPI_Request request;
    int index;
  };
  std::span<const Message> found() const { return {messages_.data(), static_cast<std::size_t>(found_)}; }
  void complete_message(const Message& message, bool awaited) const;
  int found_ = 0;
  bool receives_ = false, completes_;
  Nanoseconds waited_ = 0;
  std::array<Message, kMost> messages_;  // without initial values
};

}  // namespace latecomer::shim

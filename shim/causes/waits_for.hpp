// SPDX-License-Identifier: BSD-3-Clause
// Says for whose messages a call waited, in ranks of MPI_COMM_WORLD, on the thread that started MPI. A communicator is
// used only inside a call that names it: a program may free one while its messages are in transfer.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>

#include "shim/causes/message_ends.hpp"
#include "shim/causes/usage.hpp"
#include "shim/mpi/api.hpp"
#include "shim/state/process.hpp"

namespace latecomer::shim {

/// What this process sent to others, and how long it waited for them, on the thread that started MPI.
extern constinit profiles::PeerTable peer_table;

/// A message of that many bytes at a site; negative: not known. `to`: the receiver in MPI_COMM_WORLD; negative: not
/// known, or this process receives it.
inline void count_message(profiles::TimedSite& site, Rank to, core::Bytes bytes) {
  if (bytes < 0) return;
  site.lengths.add(bytes);
  if (to < 0) return;
  profiles::PairSums& sums = peer_table.of(to);
  ++sums.messages;
  sums.bytes += static_cast<std::uint64_t>(bytes);
}

/// A call waited for a message of that rank of `comm`, or until that rank received one. No rank, as MPI_PROC_NULL, is
/// ignored.
void waited_for(MPI_Comm comm, int rank, const Wait& wait);
/// The same for a rank of MPI_COMM_WORLD; negative: not known.
void waited_for(Rank peer, const Wait& wait);
/// A one-sided call waited for that rank of `win`. Ignores short waits, because looking the rank up takes long.
void waited_for_target(MPI_Win win, int rank, const Wait& wait);

/// The message of a request.
struct StartedMessage {
  MPI_Request request{};
  Rank peer = -1;  ///< in MPI_COMM_WORLD; negative: none
  bool receives = false, persistent = false;
  std::uint16_t kept = 0;  ///< its place in message_ends; 0: not kept
};

/// Messages by their request's handle, in sets of four. A full set makes the table grow, up to kMostBits. Then a
/// message takes the place of another one, which waits for no rank any more. The thread that started MPI notes its
/// messages. All threads forget those that they complete, because MPI uses the handle again.
class StartedMessages {
 public:
  void note_message(const StartedMessage& message) {
    const auto lock = lock_if_threads();
    in_use_.store(true, std::memory_order_relaxed);
    put_message(message);
  }
  /// Without a request: not noted, or overwritten.
  StartedMessage find_message(MPI_Request request) {
    const auto lock = lock_if_threads();
    const StartedMessage* there = find(request);
    return there ? *there : StartedMessage{};
  }
  /// MPI may use the handle for another request from now on.
  void forget_message(MPI_Request request) {
    const auto lock = lock_if_threads();
    if (StartedMessage* there = find(request)) there->request = {};
  }
  /// Messages of a completion call that nobody awaits any more. Persistent ones stay.
  void forget_completed(int count, const MPI_Request* requests) {
    if (!in_use_.load(std::memory_order_relaxed)) return;
    const auto lock = lock_if_threads();
    for (int i = 0; i < count; ++i)
      if (StartedMessage* there = find(requests[i]); there && !there->persistent) there->request = {};
  }

 private:
  using Set = std::array<StartedMessage, 4>;  // a cache line
  /// Derived: 4 KiB per process, which serve a hundred messages, and 1 MiB at most.
  static constexpr int kFirstBits = 6, kMostBits = 14;
  std::unique_lock<std::mutex> lock_if_threads() {
    return job_process().threads ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }
  Set& set_of(MPI_Request request) {
    return sets_[static_cast<std::uint64_t>(bits_of(request)) * 0x9e3779b97f4a7c15ull >> (64 - bits_)];
  }
  StartedMessage* find(MPI_Request request) {
    if (request == MPI_REQUEST_NULL) return nullptr;
    for (StartedMessage& there : set_of(request))
      if (there.request == request) return &there;
    return nullptr;
  }
  void put_message(const StartedMessage& message) {
    StartedMessage* free = nullptr;
    for (StartedMessage& there : set_of(message.request)) {
      if (there.request == message.request) free = &there;
      if (!free && there.request == MPI_Request{}) free = &there;
    }
    if (free) [[likely]]
      *free = message;
    else put_in_full_set(message);
  }
  void put_in_full_set(const StartedMessage& message);

  std::mutex mutex_;  ///< where several threads may be inside MPI
  std::atomic<bool> in_use_{false};
  Set first_[std::size_t{1} << kFirstBits];
  Set* sets_ = first_;
  int bits_ = kFirstBits;
  std::uint32_t turn_ = 0;  ///< of the places in a full set
};
extern constinit StartedMessages started_messages;

/// The communicator whose ranks were translated last. The translation lives as long as the communicator.
extern constinit std::atomic<MPI_Comm> translated;
/// Call this function before a communicator ends.
inline void forget_translation() { translated.store({}, std::memory_order_relaxed); }

/// Any rank, which the status of the message tells as its number in MPI_COMM_WORLD.
constexpr Rank kAnyRank = profiles::LiveMessage::kAnyRank;
/// As peer_of(), of a receive that is started: MPI_ANY_SOURCE is kAnyRank where all ranks of `comm` have the same
/// numbers in MPI_COMM_WORLD.
Rank source_of_start(MPI_Comm comm, int from);

/// The rank in MPI_COMM_WORLD of a rank of `comm`. Negative if the process is of another job, or outside `comm`.
Rank peer_of(MPI_Comm comm, int rank);

/// Shows `latecomer who` that the thread that started MPI waits for a message of that rank of `comm`. Returns that rank
/// in MPI_COMM_WORLD; negative: not known.
inline Rank show_awaited(MPI_Comm comm, int rank, int tag) {
  const Rank peer = rank == MPI_ANY_SOURCE ? kAnyRank : peer_of(comm, rank);
  live_await(peer, tag);
  return peer;
}

/// Notes a non-blocking message to or from a rank of `comm` that was started, or a persistent one that was made.
/// Returns as show_awaited().
inline Rank note_started(MPI_Request request, MPI_Comm comm, int rank, bool receives, bool persistent,
                         std::uint16_t kept) {
  const Rank peer = receives ? source_of_start(comm, rank) : peer_of(comm, rank);
  started_messages.note_message({request, peer, receives, persistent, kept});
  return peer;
}

/// Whether wait_in_turn() may serve these requests of MPI_Waitall: all are messages of this thread, of which there are
/// several, no other thread calls MPI, and the budget pays.
bool may_wait_in_turn(int count, const MPI_Request* requests);
/// Waits for one message after the other, without completing any, for 100 ms at most. The last one that was not there
/// yet came last: returns it, without a peer if it is not known. In 40 of 40 calls with 1,000 requests that
/// was the last one (measured, both families). Stops where MPI says that a request has failed.
StartedMessage wait_in_turn(int count, const MPI_Request* requests);

/// The messages among the requests of a completion call, as they were before the call.
class Awaited {
 public:
  Awaited(int count, const MPI_Request* requests);
  void set_wait(const Wait& wait) { wait_ = wait; }
  /// Before the call, which is no poll: the wait for messages that are kept begins.
  void begin_kept(const CallPlace& place);
  /// Right after the call.
  void end_kept();
  /// The source in the status of the only message that is complete.
  void set_source(int source) { source_ = source; }
  /// All messages are complete: the call waited for all of them.
  void complete_all() const;
  /// The message of the request with this index is complete.
  void complete_one(int index) const;
  /// After the call, whether it failed or not: forgets the messages whose handles MPI has overwritten.
  void forget_completed(const MPI_Request* requests) const;

 private:
  static constexpr int kMost = 256;  // as for observed requests: 6 KiB of the stack
  /// Without initial values. Not the StartedMessage itself, because a callback of MPI may start others.
  struct Message {
    MPI_Request request;
    Rank peer;
    int index;
    bool receives, persistent;
    std::uint16_t kept;
  };
  std::span<const Message> found() const { return {messages_.data(), static_cast<std::size_t>(found_)}; }
  Rank peer_of_message(const Message& m) const { return m.peer == kAnyRank ? source_ : m.peer; }
  int found_ = 0;
  void note_kept(const Message& message) const;
  Rank source_ = -1;
  bool receives_ = false, keeps_ = false;
  int count_ = 0;
  const CallPlace* place_ = nullptr;
  Nanoseconds begin_ = 0, end_ = 0;
  Wait wait_;
  std::array<Message, kMost> messages_;  // without initial values
};

}  // namespace latecomer::shim

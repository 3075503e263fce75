// SPDX-License-Identifier: BSD-3-Clause
// Says for whose messages a call waited, in ranks of MPI_COMM_WORLD. A communicator is used only inside a call that
// names it: a program may free one while its messages are in transfer. Another thread may even free it during a call,
// so where several threads are inside MPI, its ranks are looked up before MPI's own call.
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

/// A message of that many bytes at a site; negative: not known. `peer`: the receiver in MPI_COMM_WORLD; negative: not
/// known, or this process receives it. `fetched`: the process took the bytes from that rank, which does not count them.
inline void count_message(profiles::TimedSite& site, Rank peer, core::Bytes bytes, bool fetched = false) {
  if (bytes < 0) return;
  site.lengths.add(bytes);
  if (peer < 0 || !mpi_time.watched) return;
  peer_table.of(peer, fetched).add(bytes);
}

/// A call waited for a message of that rank of MPI_COMM_WORLD, or until that rank received one; negative: not known.
void waited_for(Rank peer, const Wait& wait);
/// The rank in MPI_COMM_WORLD of a rank of a window; negative: not known.
Rank target_of(MPI_Win win, int rank);
/// Call this function before a window ends, on any thread.
void forget_window(MPI_Win win);
/// A collective waited for the ranks from which it receives, or to which it sends if it receives nothing. Ignores short
/// waits, because looking the ranks up takes long.
void waited_for_neighbours(MPI_Comm comm, const Wait& wait);

/// A collective of neighbours that has a request was started on this thread. Their ranks are noted, or it is counted as
/// one whose waits are not known.
void note_neighbours(MPI_Comm comm, MPI_Request request);

/// The message of a request.
struct StartedMessage {
  /// The peers of a collective of neighbours, whose list has the number `kept`.
  static constexpr Rank kNeighbours = -3;
  MPI_Request request{};
  Rank peer = -1;  ///< in MPI_COMM_WORLD; negative: none
  bool receives = false, persistent = false;
  std::uint16_t kept = 0;  ///< its place in message_ends; 0: not kept
};

/// The messages that a persistent request stands for, one for each start.
struct PersistentMessage {
  MPI_Comm comm{};  ///< none after its end
  int peer = 0, tag = 0;
  core::Bytes bytes = -1;  ///< of a send
  std::uint16_t kept = 0;  ///< the place of the last one in message_ends; 0: not kept
  bool used = false;
};

/// Messages by their request's handle, in sets of four. A full set makes the table grow, up to kMostBits. Then a
/// message takes the place of another one, which waits for no rank any more. All threads note their messages, and
/// forget those that they complete, because MPI uses the handle again.
class StartedMessages {
 public:
  void note_message(const StartedMessage& message) {
    const auto lock = lock_if_threads();
    in_use_.store(true, std::memory_order_relaxed);
    put_message(message);
  }
  /// Notes a persistent request. Returns false without memory.
  bool note_persistent(StartedMessage message, const PersistentMessage& persistent);
  /// Without a request: not noted, or overwritten.
  StartedMessage find_message(MPI_Request request) {
    const auto lock = lock_if_threads();
    const StartedMessage* there = find(request);
    if (!there) return {};
    StartedMessage out = *there;
    if (out.persistent) out.kept = persistent_of(*there).kept;
    return out;
  }
  /// Calls visit(message, persistent) if the request is a persistent one.
  template <typename Visit>
  void visit_persistent(MPI_Request request, Visit visit) {
    const auto lock = lock_if_threads();
    if (const StartedMessage* there = find(request); there && there->persistent) visit(*there, persistent_of(*there));
  }
  /// MPI may use the handle for another request from now on.
  void forget_message(MPI_Request request) {
    const auto lock = lock_if_threads();
    if (StartedMessage* there = find(request)) replace(*there, {});
  }
  /// The communicator has ended. Its persistent requests stay.
  void close_communicator(MPI_Comm comm) {
    const auto lock = lock_if_threads();
    for (std::size_t i = 0; i < persistent_room_; ++i)
      if (persistent_[i].comm == comm) persistent_[i].comm = {};
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
  static constexpr std::size_t kMostPersistent = std::size_t{1} << 16;  ///< by their number's type
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
      replace(*free, message);
    else put_in_full_set(message);
  }
  void put_in_full_set(const StartedMessage& message);
  /// Of a persistent request, `kept` is its place here.
  PersistentMessage& persistent_of(const StartedMessage& message) { return persistent_[message.kept]; }
  void replace(StartedMessage& there, const StartedMessage& message) {
    if (there.persistent) [[unlikely]]
      persistent_of(there) = {};
    there = message;
  }

  std::mutex mutex_;  ///< where several threads may be inside MPI
  std::atomic<bool> in_use_{false};
  Set first_[std::size_t{1} << kFirstBits];
  Set* sets_ = first_;
  int bits_ = kFirstBits;
  std::uint32_t turn_ = 0;  ///< of the places in a full set
  /// Grows up to 2^16 requests of 32 bytes.
  PersistentMessage* persistent_ = nullptr;
  std::size_t persistent_room_ = 0, persistent_next_ = 0;
};
extern constinit StartedMessages started_messages;

/// The communicators that have ended. The translation of a communicator's ranks lives until then.
extern constinit std::atomic<std::uint64_t> ended_communicators;
/// Call this function before a communicator ends.
inline void forget_translation() { ended_communicators.fetch_add(1, std::memory_order_relaxed); }

/// Any rank, which the status of the message tells as its number in MPI_COMM_WORLD.
constexpr Rank kAnyRank = profiles::LiveMessage::kAnyRank;
/// As peer_of(), of a receive that is started: MPI_ANY_SOURCE is kAnyRank where all ranks of `comm` have the same
/// numbers in MPI_COMM_WORLD.
Rank source_of_start(MPI_Comm comm, int from);

/// The rank in MPI_COMM_WORLD of a rank of `comm`. Negative if the process is of another job, or outside `comm`.
Rank peer_of(MPI_Comm comm, int rank);

/// Shows `latecomer who` that the thread that started MPI waits for a message of that rank of MPI_COMM_WORLD.
inline void show_awaited(Rank peer, int tag = -1) {
  if (mpi_time.watched) live_await(peer, tag);
}

/// The rank in MPI_COMM_WORLD from which a call receives, which may be any one of `comm`.
class Source {
 public:
  /// Before MPI's own call. `counts`: false leaves it unknown.
  Source(MPI_Comm comm, int from, bool counts) : comm_(comm) {
    if (counts) look_up(from);
  }
  /// Negative: any rank, or not known.
  Rank peer() const { return peer_; }
  /// After the call; negative: not known.
  Rank rank(const MPI_Status* status) const { return peer_ == kAnyRank ? rank_of(status->MPI_SOURCE) : peer_; }

 private:
  void look_up(int from) {
    peer_ = from == MPI_ANY_SOURCE ? kAnyRank : peer_of(comm_, from);
    if (from == MPI_ANY_SOURCE && job_process().threads) peer_of(comm_, 0);
  }
  Rank rank_of(int source) const;
  MPI_Comm comm_;
  Rank peer_ = -1;
};

/// Notes a non-blocking message to or from a rank of `comm` that was started. Returns the rank in MPI_COMM_WORLD;
/// negative: any rank, or not known.
inline Rank note_started(MPI_Request request, MPI_Comm comm, int rank, bool receives, std::uint16_t kept) {
  const Rank peer = receives ? source_of_start(comm, rank) : peer_of(comm, rank);
  started_messages.note_message({request, peer, receives, false, kept});
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
  /// The call was the last poll of a wait that took `waited`, at the site `key`.
  void end_polled(const profiles::TimedKey& key, Nanoseconds waited);
  /// All messages are complete: the call waited for all of them. `source`: in the status of the only one, or negative.
  void complete_all(int source) const;
  /// The message of the request with this index is complete.
  void complete_one(int index, int source) const;
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
  void add_message(const Message& message) {
    if (found_ < kMost) messages_[static_cast<std::size_t>(found_++)] = message;
  }
  std::span<const Message> found() const { return {messages_.data(), static_cast<std::size_t>(found_)}; }
  static Rank peer_of_message(const Message& m, int source) { return m.peer == kAnyRank ? source : m.peer; }
  int found_ = 0;
  void note_kept(const Message& message) const;
  bool receives_ = false, keeps_ = false;
  int count_ = 0;
  const CallPlace* place_ = nullptr;         ///< of a call that waits
  const profiles::TimedKey* key_ = nullptr;  ///< of a wait by polls
  Nanoseconds begin_ = 0, end_ = 0;
  Wait wait_;
  std::array<Message, kMost> messages_;  // without initial values
};

}  // namespace latecomer::shim

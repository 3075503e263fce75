// SPDX-License-Identifier: BSD-3-Clause
// Numbers the messages that this process sends and receives, and keeps the times of some of them. The ranks at both
// ends keep the same ones, which are matched when the profile is gathered (profiles/record/message_ends.hpp). Messages
// whose number may be wrong are never matched. No function here communicates.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "profiles/record/message_ends.hpp"
#include "shim/causes/timed_sites.hpp"
#include "shim/clock.hpp"
#include "shim/guard.hpp"
#include "shim/mpi/api.hpp"

namespace latecomer::shim {

/// A message that this rank keeps.
struct KeptMessage {
  profiles::MessageEnd end;
  MPI_Request request{};  ///< of a non-blocking one, until a call has waited for it
  std::uint16_t stream = 0;
  std::int8_t levels = 0;  ///< that keep it; 0: free
};

/// A message that was kept, or none.
class KeptNow {
 public:
  KeptNow() = default;
  explicit KeptNow(KeptMessage& kept) : kept_(&kept), posted_(kept.end.posted) {}
  /// nullptr: none, or a callback of MPI has made its place that of another one.
  KeptMessage* get() const { return kept_ && kept_->levels > 0 && kept_->end.posted == posted_ ? kept_ : nullptr; }

 private:
  KeptMessage* kept_ = nullptr;
  Nanoseconds posted_ = 0;
};

/// Whether a call waited for a message, and for no other one.
enum class Waited { no, alone, shared };

/// Several threads may not be inside MPI at the same time, so there is no lock.
class MessageEnds {
 public:
  enum class Way : std::uint32_t { send, receive };

  /// Begins before the first message of the program, or never.
  void begin_numbers();
  void end_numbers() { on_ = false; }
  /// Whether the call counts, which the program makes.
  bool counts() const { return on_ && Guard::program_calls(); }

  /// Counts a message to or from a rank of `comm`, MPI_PROC_NULL included, in the order in which MPI matches it.
  /// The times of one that is kept are those of now.
  KeptNow count_message(MPI_Comm comm, int peer, int tag, Way way) {
    const std::uint32_t tag_and_way = static_cast<std::uint32_t>(tag) << 1 | static_cast<std::uint32_t>(way);
    const std::size_t at = place_of(comm, peer, tag_and_way);
    if (Stream& there = streams_[at]; there.is(comm, peer, tag_and_way)) [[likely]] {
      if (there.messages++ != there.next) [[likely]]
        return {};
      return keep_message(at);
    }
    return count_in_set(comm, peer, tag_and_way, at);
  }
  /// Messages of that kind are not in order of their numbers, from now on: MPI_ANY_SOURCE and MPI_ANY_TAG stand for
  /// all of them.
  void doubt(MPI_Comm comm, int peer, int tag, Way way);
  /// Some message for or from that rank of MPI_COMM_WORLD is none.
  void doubt_peer(Rank world, Way way);
  /// A call has failed, so no number is certain.
  void doubt_all() { doubtful_ = true; }
  /// A message that no stream counts, because its stream is not known.
  KeptNow count_unknown(Way way) { return count_at(kUnknown + static_cast<std::size_t>(way)); }

  /// Gives the message its request. Returns its place, from 1 on; 0: it is not kept.
  std::uint16_t note_request(const KeptNow& kept, MPI_Request request) {
    KeptMessage* there = kept.get();
    if (!there) return 0;
    there->request = request;
    return static_cast<std::uint16_t>(there - kept_.data() + 1);
  }
  /// The kept message of the request. nullptr: its place is that of another one.
  KeptMessage* find(std::uint16_t place, MPI_Request request) {
    if (place == 0) return nullptr;
    KeptMessage& there = kept_[place - 1u];
    return there.levels > 0 && there.request == request ? &there : nullptr;
  }
  /// A call waited for the message, unless that is known already.
  static void note_wait(KeptMessage& kept, const profiles::TimedKey& key, Nanoseconds begin, Nanoseconds end,
                        Waited waited);
  static void note_wait(KeptMessage& kept, const CallPlace& place, Nanoseconds begin, Nanoseconds end, Waited waited);
  /// A probe waited for a message from a rank of `comm`. The next receive of its stream takes it.
  void note_probed(MPI_Comm comm, int peer, int tag, const profiles::TimedKey& key, Nanoseconds waited);

  /// The number of the communicator that the next call on `parent` makes, which is the same on all ranks of it; 0: not
  /// known. All of these calls are collective, so all ranks make them in the same order.
  std::uint64_t number_next(MPI_Comm parent, std::uint32_t call);
  void number_communicator(MPI_Comm made, std::uint64_t number);
  /// The communicator has ended: MPI may use its handle again. An attribute would tell that too, but MPICH lets the one
  /// that was set first decide whether the program may free the communicator.
  void close_communicator(MPI_Comm comm);

  void list_ends(std::vector<profiles::StreamEnd>& out) const;

 private:
  struct Stream {
    MPI_Comm comm{};  ///< none after its end
    int peer = 0;     ///< in `comm`
    std::uint32_t tag_and_way = 0;
    std::uint64_t messages = 0;
    std::uint64_t next = 0;  ///< the number of the next one to keep
    bool is(MPI_Comm c, int p, std::uint32_t t) const { return comm == c && peer == p && tag_and_way == t; }
    Way way() const { return static_cast<Way>(tag_and_way & 1); }
    int tag() const { return static_cast<int>(tag_and_way >> 1); }
  };
  /// What a stream needs rarely.
  struct StreamFacts {
    std::uint64_t communicator = 0;  ///< 0: free
    Rank peer = 0;                   ///< in MPI_COMM_WORLD; -1: not known
    bool doubtful = false;
  };
  /// The wait of a probe for a message that is not received yet.
  struct Probed {
    MPI_Comm comm{};  ///< none: there is no such message
    int peer = 0;
    std::uint32_t tag_and_way = 0;
    std::uint64_t number = UINT64_MAX;
    profiles::TimedKey key;
    Nanoseconds begin = 0, end = 0;
  };
  struct Doubt {
    MPI_Comm comm{};
    int peer = 0, tag = 0;
    Way way = Way::send;
    bool covers(const Stream& s) const {
      return s.comm == comm && s.way() == way && (peer == MPI_ANY_SOURCE || s.peer == peer) &&
             (tag == MPI_ANY_TAG || s.tag() == tag);
    }
  };

  /// A communicator whose number all of its ranks know.
  struct Numbered {
    MPI_Comm comm{};
    std::uint64_t number = 0;
    std::uint64_t made = 0;  ///< communicators that were made from it
  };

  /// Derived: 1,024 streams of 48 bytes, in sets of four, 512 messages of 88 bytes, and 256 communicators of 24 bytes:
  /// 99 KiB per process. A stream whose set is full is not known, for ever. Streams of communicators that have ended
  /// stay.
  static constexpr int kStreamBits = 10;
  static constexpr std::size_t kStreams = std::size_t{1} << kStreamBits, kSet = 4, kKept = 512, kDoubts = 32,
                               kCommunicators = 256;
  static constexpr std::uint64_t kWorld = 1, kNoNumber = UINT64_MAX;
  static constexpr std::size_t kUnknown = kStreams;  ///< the places of the messages without a stream, by Way

  static std::size_t place_of(MPI_Comm comm, int peer, std::uint32_t tag_and_way) {
    const std::uint64_t key = static_cast<std::uint64_t>(bits_of(comm)) * 0x9e3779b97f4a7c15ull ^
                              (static_cast<std::uint64_t>(static_cast<std::uint32_t>(peer)) << 32 | tag_and_way);
    return key * 0xd6e8feb86659fd93ull >> (64 - kStreamBits);
  }
  /// The stream's place; kStreams: it has had no message yet, or is not known.
  std::size_t find_stream(MPI_Comm comm, int peer, std::uint32_t tag_and_way) const;
  KeptNow count_in_set(MPI_Comm comm, int peer, std::uint32_t tag_and_way, std::size_t at);
  KeptNow keep_message(std::size_t at);
  KeptNow count_at(std::size_t at) {
    return streams_[at].messages++ == streams_[at].next ? keep_message(at) : KeptNow();
  }
  void raise_level();
  profiles::StreamKey key_of(std::size_t at) const;
  Numbered* numbered(MPI_Comm comm);

  bool on_ = false, doubtful_ = false;
  int level_ = 0;  ///< one of 2^level_ messages is kept
  std::size_t doubts_ = 0, next_free_ = 0, numbers_ = 0;
  std::array<Numbered, kCommunicators> communicators_;  ///< the first `numbers_` may be in use
  std::array<Doubt, kDoubts> doubt_;
  Probed probed_;
  std::array<Stream, kStreams + 2> streams_;
  std::array<StreamFacts, kStreams + 2> facts_;
  std::array<KeptMessage, kKept> kept_;
};
extern constinit MessageEnds message_ends;

/// A blocking call sends a message, or receives one from a rank and with a tag that it names.
class CountedMessage {
 public:
  using Way = MessageEnds::Way;
  CountedMessage(MPI_Comm comm, int peer, int tag, Way way) : counts_(message_ends.counts()) {
    if (counts_) kept_ = message_ends.count_message(comm, peer, tag, way);
  }
  /// After MPI's own call, which returned `rc`. `bytes()`: of the message; -1: not known.
  template <typename Bytes>
  void end(const CallPlace& place, int rc, Waited waited, Bytes bytes) {
    if (!counts_) return;
    if (rc != MPI_SUCCESS) [[unlikely]]
      return message_ends.doubt_all();
    if (KeptMessage* kept = kept_.get()) [[unlikely]] {
      if (waited != Waited::no) end_kept(*kept, place, waited);
      kept->end.bytes = bytes();
    }
  }

 private:
  static void end_kept(KeptMessage& kept, const CallPlace& place, Waited waited);
  bool counts_;
  KeptNow kept_;
};

/// A blocking call receives from any rank or with any tag: the message gets its number when it is there. No receive is
/// posted meanwhile.
void count_received(const CallPlace& place, MPI_Comm comm, const MPI_Status& status, std::int64_t bytes,
                    Nanoseconds posted, Waited waited);

}  // namespace latecomer::shim

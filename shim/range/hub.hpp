// SPDX-License-Identifier: BSD-3-Clause
// Messages between ranks of ranges over one duplicate of an MPI communicator. Every message begins with an envelope
// that contains the full range, tag and operation. The hub matches messages by the whole envelope. So isolation is
// exact, wildcards included, and ranges, depth and tags have no limit (docs/explanation/range_communicators.md).
//
// Short messages travel inside their envelope. Long data follow as a separate message, directly between the program's
// buffers. MPI keeps the envelopes between two ranks in order, hence the matching, too.
#pragma once

#include <latecomer/range.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "shim/mpi/progress.hpp"
#include "shim/range/matching.hpp"
#include "shim/runner/running.hpp"

namespace latecomer::range {

Identity identity_of(const latecomer_range& range);
struct IdentityHash {
  std::size_t operator()(const Identity& i) const;
};

class Hub;

/// A datatype that stays usable after the program frees its own.
class KeptType {
 public:
  explicit KeptType(MPI_Datatype type);
  ~KeptType();
  KeptType(const KeptType&) = delete;
  KeptType& operator=(const KeptType&) = delete;
  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_;
  bool owned_ = false;
};

/// One send or receive, from its start until its owner and MPI have released it.
struct RangeMessage {
  bool sends = false, complete = false, dropped = false;
  int rc = MPI_SUCCESS;
  Envelope envelope;  // receives: the pattern, then the arrived envelope
  Rank source = -1;   // in the hub's communicator; receives: may be MPI_ANY_SOURCE until matched
  char* data = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::optional<KeptType> type_kept;
  std::vector<char> chunk;  // envelope and data of a short message
  int in_flight = 0;        // number of MPI requests that refer to it
};

class Hub {
 public:
  /// Collective over `comm`. rc() has the error.
  explicit Hub(MPI_Comm comm);
  /// Frees the duplicate, in MPI_Finalize or when the communicator is freed.
  ~Hub();
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;
  int rc() const { return rc_; }
  MPI_Comm comm() const { return comm_; }
  int size() const { return size_; }
  int rank() const { return rank_; }

  /// `to`, `from`: ranks in this communicator; `from` may be MPI_ANY_SOURCE for any member of the range. The data must
  /// stay in place. Returns nullptr on an error, which `rc` contains.
  RangeMessage* send_message(const void* data, MPI_Count count, MPI_Datatype type, Rank to, const Envelope& key,
                             bool synchronous, int* rc);
  RangeMessage* receive_message(void* data, MPI_Count count, MPI_Datatype type, Rank from, const Envelope& key);
  /// Receives a message that take_arrival() returned.
  RangeMessage* receive_message(void* data, MPI_Count count, MPI_Datatype type, std::unique_ptr<Arrival> arrival);
  /// find_arrival(): the first matching message, or nullptr. take_arrival(): removes it from the queue and returns it.
  const Arrival* find_arrival(Rank from, const Envelope& key) const { return matching_.find_arrival(from, key); }
  std::unique_ptr<Arrival> take_arrival(Rank from, const Envelope& key) { return matching_.take_arrival(from, key); }
  /// Releases a complete or dropped message.
  void release_message(RangeMessage* message);
  /// Advances all messages. Returns an MPI error code.
  int progress();

  /// Sends the chunk of a short message: the envelope, and the data behind it. Waits until MPI has the chunk.
  int send_straight(const char* chunk, std::int64_t bytes, Rank to) const {
    return PMPI_Send(chunk, size_of_chunk(bytes), MPI_BYTE, to, kEnvelopeTag, comm_);
  }
  /// Does not wait. The chunk must stay in place until the request is complete.
  int isend_straight(const char* chunk, std::int64_t bytes, Rank to, MPI_Request* request) const {
    return PMPI_Isend(chunk, size_of_chunk(bytes), MPI_BYTE, to, kEnvelopeTag, comm_, request);
  }
  /// Waits for one message of a collective, and receives up to `room` bytes of it. `key.bytes` has no meaning. No
  /// operation of this process may be outstanding, because none advances. Returns an MPI error class.
  int receive_straight(char* into, MPI_Count room, Rank from, const Envelope& key);
  /// The chunk of the message that receive_straight returned last, if it came from MPI and filled the room; else
  /// nullptr. Valid until the next receive.
  const char* last_chunk() const { return last_chunk_; }

  /// The number of the next collective of a range. All members get the same number, because they call in the same
  /// order.
  std::uint32_t next_collective(const Identity& where) {
    // Ranges that a program uses in turn find their counter without the map.
    Recent& recent = recent_[static_cast<std::size_t>(where.first * 5 + where.size * 3 + where.stride + where.context +
                                                      where.depth) %
                             recent_.size()];
    if (!recent.counter || recent.where != where) recent = {where, &collectives_[where]};
    return ++*recent.counter;
  }

  static constexpr int kEnvelopeTag = 0;
  /// The tag for MPI_Comm_create_group, negative if no tag is left. Open MPI gives it to its own messages of that call
  /// on this communicator, so no message of a range has it.
  int creation_tag(int tag) const { return tag < tags_ ? kFirstPayload + tags_ + tag : -1; }

 private:
  // Derived: copies from a rank to itself use the tag 4003 (shim/tags.hpp), and the envelopes 0. At least 12,287 tags
  // are left for data and as many for creations, because MPI guarantees tags up to 32,767.
  static constexpr int kFirstPayload = 8192;

  static int size_of_chunk(std::int64_t bytes) { return static_cast<int>(sizeof(Envelope)) + static_cast<int>(bytes); }
  /// Copies the data of a short message, or receives those of a long message and returns MPI_ERR_TRUNCATE.
  int unload_chunk(const Envelope& envelope, const char* chunk, Rank source, char* into, MPI_Count room);
  RangeMessage* make_receive(void* data, MPI_Count count, MPI_Datatype type);
  RangeMessage* make_message();
  void track_request(RangeMessage* message, MPI_Request request);
  void deliver_arrival(RangeMessage& receive, Arrival& arrival);
  void finish_message(RangeMessage* message);
  /// Finishes the messages whose MPI requests are complete.
  int finish_completed();

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rc_ = MPI_SUCCESS, size_ = 0, rank_ = -1;
  std::size_t next_collect_ = 0;
  int awaited_ = 0;  // requests of messages that their owners wait for
  int bursts_ = 0;   // > 0: messages recently arrived in bursts
  unsigned matched_ = 0;
  // Whether each rank of this host may have a core of its own, or MPI yields while it waits.
  bool may_wait_in_mpi_ = false;
  // The number of tags for data, which begin at kFirstPayload, and of those for creations, which follow.
  int tags_ = 0;
  std::uint32_t sent_ = 0;  // number of data messages so far
  Matching<RangeMessage> matching_;
  std::vector<std::unique_ptr<Arrival>> spare_;
  std::vector<MPI_Request> requests_;  // in flight; owners_ has their messages
  std::vector<RangeMessage*> owners_;
  std::vector<int> finished_;
  std::vector<std::unique_ptr<RangeMessage>> pool_;
  std::vector<RangeMessage*> free_;
  std::vector<char> landing_;  // the chunk of a straight receive
  const char* last_chunk_ = nullptr;
  std::unordered_map<Identity, std::uint32_t, IdentityHash> collectives_;  // entries stay in place
  struct Recent {
    Identity where;
    std::uint32_t* counter = nullptr;
  };
  std::array<Recent, 16> recent_;
};

}  // namespace latecomer::range

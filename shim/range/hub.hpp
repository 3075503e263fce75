// SPDX-License-Identifier: BSD-3-Clause
// Messages between ranks of ranges over one duplicate of an MPI communicator. Every message begins with an envelope
// that contains the full range, tag and operation. The hub matches messages by the whole envelope. So isolation is
// exact, wildcards included, and ranges, depth and tags have no limit (docs/explanation/range_communicators.md).
//
// Short messages travel inside their envelope. Long data follow as a separate message, directly between the program's
// buffers. MPI keeps the envelopes between two ranks in order, hence the matching, too.
#pragma once

#include <latecomer/range.h>

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "shim/dispatch/runner/running.hpp"

namespace latecomer::range {

using shim::Rank;

/// A communicator: its members in order, its depth, and the program's context number.
struct Identity {
  std::int32_t first, size, stride, depth, context;
  bool operator==(const Identity&) const = default;
};
Identity identity_of(const latecomer_range& range);
struct IdentityHash {
  std::size_t operator()(const Identity& i) const;
};

/// The header before the data of every message.
struct Envelope {
  Identity where;
  std::int32_t tag = 0;
  std::uint32_t collective =
      0;                     ///< 0: point to point; else the number of the range's collective, and `tag` its channel
  std::int32_t payload = 0;  ///< MPI tag of the data; 0: they follow here
  std::int64_t bytes = 0;
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
struct Message {
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

/// A message that arrived before a matching receive.
struct Arrival {
  Envelope envelope;
  Rank source = -1;
  std::vector<char> chunk;
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
  Message* send(const void* data, MPI_Count count, MPI_Datatype type, Rank to, const Envelope& key, bool synchronous,
                int* rc);
  Message* receive(void* data, MPI_Count count, MPI_Datatype type, Rank from, const Envelope& key);
  /// Receives a message that take() returned.
  Message* receive(void* data, MPI_Count count, MPI_Datatype type, std::unique_ptr<Arrival> arrival);
  /// find(): the first matching message, or nullptr. take(): removes it from the queue and returns it.
  const Arrival* find(Rank from, const Envelope& key) const;
  std::unique_ptr<Arrival> take(Rank from, const Envelope& key);
  /// Releases a complete or dropped message.
  void release(Message* message);
  /// Advances all messages. Returns an MPI error code.
  int progress();

  /// The number of the next collective of a range. All members get the same number, because they call in the same
  /// order.
  std::uint32_t next_collective(const Identity& where) { return ++collectives_[where]; }

 private:
  using Arrivals = std::list<std::unique_ptr<Arrival>>;
  static bool matches(const Arrival& arrival, Rank from, const Envelope& key);
  Arrivals::const_iterator first_match(Rank from, const Envelope& key) const;
  Message* fresh_receive(void* data, MPI_Count count, MPI_Datatype type);
  Message* fresh();
  void track(Message* message, MPI_Request request);
  void deliver(Message& receive, Arrival& arrival);
  void finish(Message* message);
  /// Finishes the messages whose MPI requests are complete.
  int collect();

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rc_ = MPI_SUCCESS, size_ = 0, rank_ = -1;
  std::size_t next_collect_ = 0;
  int awaited_ = 0;  // requests of messages that their owners wait for
  int bursts_ = 0;   // > 0: messages recently arrived in bursts
  unsigned matched_ = 0;
  int tags_ = 0;                 // number of tags for data; they begin at kFirstPayload
  std::uint32_t sent_ = 0;       // number of data messages so far
  std::list<Message*> waiting_;  // receives in the order of posting
  Arrivals unexpected_;          // in the order of arrival
  std::vector<std::unique_ptr<Arrival>> spare_;
  std::vector<MPI_Request> requests_;  // in flight; owners_ has their messages
  std::vector<Message*> owners_;
  std::vector<int> finished_;
  std::vector<std::unique_ptr<Message>> pool_;
  std::vector<Message*> free_;
  std::unordered_map<Identity, std::uint32_t, IdentityHash> collectives_;
};

}  // namespace latecomer::range

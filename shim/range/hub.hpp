// SPDX-License-Identifier: BSD-3-Clause
// Messages between ranks of ranges, over one duplicate of an MPI communicator. Every message begins with an envelope
// that says in full which range, tag and operation it belongs to; matching is done here, against all of it. So
// isolation is exact, wildcards included, without any limit on ranges, depth or tags (docs/ranges.md has the argument).
//
// Short messages travel in their envelope. Of long ones the data follow as a message of their own, straight from and to
// the program's buffers. MPI's order of messages between two ranks is that of the envelopes, hence of the matching.
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

/// A communicator: members in order, how deep it was made, and the program's own number.
struct Identity {
  std::int32_t first, size, stride, depth, context;
  bool operator==(const Identity&) const = default;
};
Identity identity_of(const latecomer_range& range);
struct IdentityHash {
  std::size_t operator()(const Identity& i) const;
};

/// What goes before the data of every message.
struct Envelope {
  Identity where;
  std::int32_t tag = 0;
  std::uint32_t collective =
      0;                     ///< 0: point to point; else the number of the range's collective, and `tag` its channel
  std::int32_t payload = 0;  ///< MPI tag of the data; 0: they follow here
  std::int64_t bytes = 0;
};

class Hub;

/// A datatype that stays usable when the program frees its own.
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

/// One send or receive, from when it is asked for until nobody needs it.
struct Message {
  bool sends = false, complete = false, dropped = false;
  int rc = MPI_SUCCESS;
  Envelope envelope;  // receives: the pattern, then what came
  Rank source = -1;   // in the hub's communicator; receives: MPI_ANY_SOURCE allowed until matched
  char* data = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::optional<KeptType> type_kept;
  std::vector<char> chunk;  // envelope and data of a short message
  int in_flight = 0;        // MPI requests that refer to it
};

/// A message that has come before anybody asked for it.
struct Arrival {
  Envelope envelope;
  Rank source = -1;
  std::vector<char> chunk;
};

class Hub {
 public:
  /// Collective over `comm`. Errors are left in rc().
  explicit Hub(MPI_Comm comm);
  /// Frees the duplicate: inside MPI_Finalize, or when the communicator goes.
  ~Hub();
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;
  int rc() const { return rc_; }
  MPI_Comm comm() const { return comm_; }
  int size() const { return size_; }
  int rank() const { return rank_; }

  /// `to`, `from`: in this communicator; from: MPI_ANY_SOURCE for any member of the range. Data must stay. nullptr: see
  /// `rc`.
  Message* send(const void* data, MPI_Count count, MPI_Datatype type, Rank to, const Envelope& key, bool synchronous,
                int* rc);
  Message* receive(void* data, MPI_Count count, MPI_Datatype type, Rank from, const Envelope& key);
  /// Receives what was taken out by take().
  Message* receive(void* data, MPI_Count count, MPI_Datatype type, std::unique_ptr<Arrival> arrival);
  /// The first message that would match, or nullptr; take: for the caller alone.
  const Arrival* find(Rank from, const Envelope& key) const;
  std::unique_ptr<Arrival> take(Rank from, const Envelope& key);
  /// A complete or dropped message is gone for its owner.
  void release(Message* message);
  /// Moves everything. Returns an MPI error code.
  int progress();

  /// Number of the next collective of a range. All members count alike, since they call in the same order.
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
  /// Asks MPI what has completed.
  int collect();

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rc_ = MPI_SUCCESS, size_ = 0, rank_ = -1;
  std::size_t next_collect_ = 0;
  int awaited_ = 0;  // requests whose message its owner waits for
  int bursts_ = 0;   // > 0: messages came in bursts lately
  unsigned matched_ = 0;
  int tags_ = 0;                 // tags for data begin at kFirstPayload
  std::uint32_t sent_ = 0;       // data messages so far
  std::list<Message*> waiting_;  // receives, in the order in which they were posted
  Arrivals unexpected_;          // in the order of arrival
  std::vector<std::unique_ptr<Arrival>> spare_;
  std::vector<MPI_Request> requests_;  // in flight, with whose they are
  std::vector<Message*> owners_;
  std::vector<int> finished_;
  std::vector<std::unique_ptr<Message>> pool_;
  std::vector<Message*> free_;
  std::unordered_map<Identity, std::uint32_t, IdentityHash> collectives_;
};

}  // namespace latecomer::range

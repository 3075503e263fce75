// SPDX-License-Identifier: BSD-3-Clause
// What latecomer does in MPI's calls that may wait and are no collectives, and in those that start a message. They add
// up their time by call sites and note for whom it waits. The generated handlers use these templates
// (shim/front/functions.def), and `native` is MPI's own call.
#pragma once

#include "shim/causes/message_ends.hpp"
#include "shim/causes/usage.hpp"
#include "shim/causes/waits_for.hpp"
#include "shim/guard.hpp"
#include "shim/state/clocks.hpp"
#include "shim/state/not_counted.hpp"

namespace latecomer::shim {

/// Whether the call is timed. The times of a thread that is not watched are in no figure.
inline bool times_this_call() {
  if (!timing.load(std::memory_order_relaxed) || !Guard::program_calls()) return false;
  if (!mpi_time.watched) [[unlikely]]
    declined.add(profiles::Uncounted::other_threads);
  return true;
}

/// Of a call that waits for no rank that is known.
template <typename Native>
int time_wait(const CallPlace& place, Native native) {
  const MessageCall timed(place, times_this_call());
  return native();
}

/// Of a call that takes long and is rare, such as one that makes a communicator.
template <typename Native>
int time_rare_wait(const CallPlace& place, Native native) {
  const OtherCall timed(place, times_this_call(), &MpiTime::other_mpi);
  return native();
}

/// Of a collective call on `parent` that makes a communicator.
template <typename Native>
int make_communicator(const CallPlace& place, Native native, MPI_Comm parent, const MPI_Comm* made) {
  const std::uint64_t number = message_ends.number_next(parent, place.call);
  const int rc = time_rare_wait(place, native);
  if (rc == MPI_SUCCESS) message_ends.number_communicator(*made, number);
  return rc;
}

template <typename Native>
int time_file_access(const CallPlace& place, Native native) {
  const OtherCall timed(place, times_this_call(), &MpiTime::io);
  const FileCall file_call(true);
  return native();
}

/// Of a call that waits for the rank `to` of `comm`.
template <typename Native>
int time_sending(const CallPlace& place, Native native, MPI_Comm comm, int to, int tag) {
  MessageCall timed(place, times_this_call());
  if (timed.has_site()) show_awaited(comm, to, tag);
  const int rc = native();
  if (const Wait wait = timed.end(); wait && rc == MPI_SUCCESS) [[unlikely]]
    waited_for(comm, to, wait);
  return rc;
}

template <typename Native>
int time_send(const CallPlace& place, Native native, MPI_Comm comm, int to, int tag) {
  const auto counted = [&] {
    CountedMessage sent(comm, to, tag, MessageEnds::Way::send);
    const int rc = native();
    sent.end(place, rc, Waited::alone);
    return rc;
  };
  return time_sending(place, counted, comm, to, tag);
}

/// Of a one-sided call that waits for the rank `target` of `win`.
template <typename Native>
int time_access(const CallPlace& place, Native native, MPI_Win win, int target) {
  MessageCall timed(place, times_this_call());
  const int rc = native();
  if (const Wait wait = timed.end(); wait && rc == MPI_SUCCESS) [[unlikely]]
    waited_for_target(win, target, wait);
  return rc;
}

/// A receive from any rank needs a status, which tells the rank: without one, MPI gets `own`.
inline void need_source(const MessageCall& timed, int from, MPI_Status*& status, MPI_Status& own) {
  if (timed.is_timed() && timed.has_site() && from == MPI_ANY_SOURCE && status == MPI_STATUS_IGNORE) status = &own;
}
inline int source_of(int from, const MPI_Status* status) { return from == MPI_ANY_SOURCE ? status->MPI_SOURCE : from; }

/// Of a call that waits for the rank `from` of `comm`.
template <typename Native>
int time_receiving(const CallPlace& place, Native native, MPI_Comm comm, int from, int tag, MPI_Status*& status) {
  MessageCall timed(place, times_this_call());
  if (timed.has_site()) show_awaited(comm, from, tag);
  MPI_Status own;
  need_source(timed, from, status, own);
  const int rc = native();
  if (const Wait wait = timed.end(); wait && rc == MPI_SUCCESS) [[unlikely]]
    waited_for(comm, source_of(from, status), wait);
  return rc;
}

inline bool is_wildcard(int from, int tag) { return from == MPI_ANY_SOURCE || tag == MPI_ANY_TAG; }

/// Runs a blocking call, and counts the message that it receives.
template <typename Native>
int count_receive(const CallPlace& place, Native native, MPI_Comm comm, int from, int tag, MPI_Status*& status,
                  Waited waited) {
  if (!is_wildcard(from, tag)) {
    CountedMessage received(comm, from, tag, MessageEnds::Way::receive);
    const int rc = native();
    received.end(place, rc, waited);
    return rc;
  }
  if (!message_ends.counts()) return native();
  MPI_Status own, *const given = status;
  if (given == MPI_STATUS_IGNORE) status = &own;
  const Nanoseconds posted = job_clocks().common_now();
  const int rc = native();
  if (rc == MPI_SUCCESS) count_received(place, comm, *status, posted, waited);
  else message_ends.doubt_all();
  status = given;
  return rc;
}

template <typename Native>
int time_receive(const CallPlace& place, Native native, MPI_Comm comm, int from, int tag, MPI_Status*& status) {
  const auto counted = [&] { return count_receive(place, native, comm, from, tag, status, Waited::alone); };
  return time_receiving(place, counted, comm, from, tag, status);
}

/// Of a call that takes a message out of the order of receives.
template <typename Native>
int match_probed(const CallPlace& place, Native native, MPI_Comm comm, int from, int tag, MPI_Status*& status) {
  if (message_ends.counts()) message_ends.doubt(comm, from, tag, MessageEnds::Way::receive);
  return time_receiving(place, native, comm, from, tag, status);
}

/// Of a call that sends to the rank `to` and receives from the rank `from` of `comm`. It waits for both of them; which
/// one came last is not known.
template <typename Native>
int time_exchanging(const CallPlace& place, Native native, MPI_Comm comm, int to, int send_tag, int from, int tag,
                    MPI_Status*& status) {
  if (to == from || to == MPI_PROC_NULL) return time_receiving(place, native, comm, from, tag, status);
  if (from == MPI_PROC_NULL) return time_sending(place, native, comm, to, send_tag);
  MessageCall timed(place, times_this_call());
  MPI_Status own;
  need_source(timed, from, status, own);
  const int rc = native();
  if (const Wait wait = timed.end(); wait && rc == MPI_SUCCESS) [[unlikely]] {
    const int source = source_of(from, status);
    waited_for(comm, to, wait);
    if (source == to) return rc;
    waited_for(comm, source, wait);
    wait.site->together += wait.time;
  }
  return rc;
}

template <typename Native>
int time_exchange(const CallPlace& place, Native native, MPI_Comm comm, int to, int send_tag, int from, int tag,
                  MPI_Status*& status) {
  const auto counted = [&] {
    CountedMessage sent(comm, to, send_tag, MessageEnds::Way::send);
    const Waited waited = to == MPI_PROC_NULL ? Waited::alone : Waited::shared;
    const int rc = count_receive(place, native, comm, from, tag, status, waited);
    sent.end(place, rc, from == MPI_PROC_NULL ? Waited::alone : Waited::no);
    return rc;
  };
  return time_exchanging(place, counted, comm, to, send_tag, from, tag, status);
}

struct MessageKind {
  bool receives = false;
  bool persistent = false;
};

/// Counts a message that a call starts. MPI may match others before one that names no source or no tag. One that is
/// persistent is not seen when it starts.
inline KeptNow count_start(MPI_Comm comm, int peer, int tag, MessageKind kind) {
  const auto way = kind.receives ? MessageEnds::Way::receive : MessageEnds::Way::send;
  const bool wildcard = kind.receives && is_wildcard(peer, tag);
  if (!wildcard && !kind.persistent) [[likely]]
    return message_ends.count_message(comm, peer, tag, way);
  message_ends.doubt(comm, peer, tag, way);
  return kind.persistent ? KeptNow() : message_ends.count_unknown(way);
}

/// Of a call that starts a message to or from the rank `peer` of `comm`.
template <typename Native>
int start_message(Native native, const MPI_Request* request, MPI_Comm comm, int peer, int tag, MessageKind kind) {
  end_polls();
  keep_on_disk_sometimes();
  const KeptNow kept = message_ends.counts() ? count_start(comm, peer, tag, kind) : KeptNow();
  const int rc = native();
  if (rc != MPI_SUCCESS) [[unlikely]]
    message_ends.doubt_all();
  else if (mpi_time.watched && Guard::program_calls())
    note_started(*request, comm, peer, kind.receives, kind.persistent, message_ends.note_request(kept, *request));
  return rc;
}

/// Of a call that starts two messages under one request, which are not counted.
template <typename Native>
int start_exchange(Native native, MPI_Comm comm, int to, int send_tag, int from, int tag) {
  end_polls();
  keep_on_disk_sometimes();
  if (message_ends.counts()) {
    message_ends.doubt(comm, to, send_tag, MessageEnds::Way::send);
    message_ends.doubt(comm, from, tag, MessageEnds::Way::receive);
  }
  return native();
}

/// The message of the request may have a number and never exist.
template <typename Native>
int cancel_request(const MPI_Request* request, Native native) {
  if (request && message_ends.counts()) {
    const StartedMessage message = started_messages.find_message(*request);
    if (message.request != *request) message_ends.doubt_all();
    else message_ends.doubt_peer(message.peer, message.receives ? MessageEnds::Way::receive : MessageEnds::Way::send);
  }
  return native();
}

}  // namespace latecomer::shim

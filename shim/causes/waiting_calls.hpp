// SPDX-License-Identifier: BSD-3-Clause
// What latecomer does in MPI's calls that may wait and are no collectives, and in those that start a message. They add
// up their time by call sites and note for whom it waits. The generated handlers use these templates
// (shim/front/functions.def), and `native` is MPI's own call.
#pragma once

#include "shim/causes/message_ends.hpp"
#include "shim/causes/usage.hpp"
#include "shim/causes/waits_for.hpp"
#include "shim/guard.hpp"
#include "shim/mpi/type_sizes.hpp"
#include "shim/state/clocks.hpp"

namespace latecomer::shim {

/// Whether the call is timed.
inline bool times_this_call() { return timing.load(std::memory_order_relaxed) && Guard::program_calls(); }

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

/// The data of a message.
struct Payload {
  MPI_Count count;
  MPI_Datatype type;
  core::Bytes bytes() const { return bytes_of_message(count, type); }
};

/// The bytes that a receive got, by its status.
inline core::Bytes bytes_received(const MPI_Status& status) {
#ifdef OPEN_MPI
  return static_cast<core::Bytes>(status._ucount);
#elif defined(LATECOMER_ABI)
  int bytes = 0;
  return PMPI_Get_count(&status, MPI_BYTE, &bytes) == MPI_SUCCESS && bytes != MPI_UNDEFINED ? bytes : -1;
#else
  return core::Bytes{status.count_hi_and_cancelled >> 1} << 32 | static_cast<std::uint32_t>(status.count_lo);
#endif
}

/// Of a call that sends to the rank `to` of `comm`, and waits for it. MPI has accepted the datatype when it is asked
/// for its size, so no error handler is called for it.
template <typename Native>
int time_sending(const CallPlace& place, Native native, MPI_Comm comm, int to, int tag, Payload payload) {
  MessageCall timed(place, times_this_call());
  const Rank peer = timed.has_site() ? peer_of(comm, to) : -1;
  if (timed.has_site()) show_awaited(peer, tag);
  const int rc = native();
  const Wait wait = timed.end();
  if (!timed.has_site() || rc != MPI_SUCCESS || to == MPI_PROC_NULL) return rc;
  if (wait) [[unlikely]]
    waited_for(peer, wait);
  count_message(*timed.site(), peer, payload.bytes());
  return rc;
}

template <typename Native>
int time_send(const CallPlace& place, Native native, MPI_Comm comm, int to, int tag, Payload payload) {
  const auto counted = [&] {
    CountedMessage sent(comm, to, tag, MessageEnds::Way::send);
    const int rc = native();
    sent.end(place, rc, Waited::alone, [&] { return payload.bytes(); });
    return rc;
  };
  return time_sending(place, counted, comm, to, tag, payload);
}

/// Of a one-sided call that waits for the rank `target` of `win`.
template <typename Native>
int time_access(const CallPlace& place, Native native, MPI_Win win, int target) {
  MessageCall timed(place, times_this_call());
  const int rc = native();
  if (const Wait wait = timed.end(); wait && rc == MPI_SUCCESS) [[unlikely]]
    waited_for(target_of(win, target), wait);
  return rc;
}

/// Where a one-sided call moves data: to its target, from there, or both.
enum class Access { put, get, both };

/// The same, of a call that moves data.
template <typename Native>
int time_access(const CallPlace& place, Native native, MPI_Win win, int target, Access access, Payload payload) {
  MessageCall timed(place, times_this_call());
  const int rc = native();
  const Wait wait = timed.end();
  if (!timed.has_site() || rc != MPI_SUCCESS || target == MPI_PROC_NULL) return rc;
  const Rank peer = target_of(win, target);
  if (wait) [[unlikely]]
    waited_for(peer, wait);
  const core::Bytes bytes = payload.bytes();
  if (access != Access::get) count_message(*timed.site(), peer, bytes);
  if (access != Access::put) count_message(*timed.site(), peer, bytes, true);
  return rc;
}

/// Of a blocking collective of neighbours, which waits for those that it receives from.
template <typename Native>
int time_neighbours(const CallPlace& place, Native native, MPI_Comm comm) {
  MessageCall timed(place, times_this_call());
  const int rc = native();
  if (const Wait wait = timed.end(); wait && rc == MPI_SUCCESS) [[unlikely]]
    waited_for_neighbours(comm, wait);
  return rc;
}

template <typename Native>
int free_window(MPI_Win* win, Native native) {
  forget_window(*win);
  return native();
}

/// The status of a receive tells its rank and its bytes: without one, MPI gets `own`.
inline void need_status(const MessageCall& timed, MPI_Status*& status, MPI_Status& own) {
  if (timed.has_site() && status == MPI_STATUS_IGNORE) status = &own;
}
inline int source_of(int from, const MPI_Status* status) { return from == MPI_ANY_SOURCE ? status->MPI_SOURCE : from; }

/// A probe waited for a message of the rank `from` of `comm`, which the next receive takes.
inline void note_probed(MPI_Comm comm, int from, int tag, const MPI_Status* status, const profiles::TimedKey& key,
                        Nanoseconds waited) {
  if (message_ends.counts() && from != MPI_PROC_NULL)
    message_ends.note_probed(comm, source_of(from, status), tag == MPI_ANY_TAG ? status->MPI_TAG : tag, key, waited);
}

/// Of a call that waits for the rank `from` of `comm`. `takes`: the call receives the message. `leaves`: the next
/// receive does.
template <bool takes = true, bool leaves = false, typename Native>
int time_receiving(const CallPlace& place, Native native, MPI_Comm comm, int from, int tag, MPI_Status*& status) {
  MessageCall timed(place, times_this_call());
  const Source source(comm, from, timed.has_site());
  if (timed.has_site()) show_awaited(source.peer(), tag);
  MPI_Status own;
  need_status(timed, status, own);
  const int rc = native();
  if (const Wait wait = timed.end(); wait && rc == MPI_SUCCESS) [[unlikely]] {
    waited_for(source.rank(status), wait);
    if (leaves) note_probed(comm, from, tag, status, timed.site()->key, timed.time());
  }
  if (takes && timed.has_site() && rc == MPI_SUCCESS && from != MPI_PROC_NULL)
    count_message(*timed.site(), -1, bytes_received(*status));
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
    received.end(place, rc, waited, [&] { return status == MPI_STATUS_IGNORE ? -1 : bytes_received(*status); });
    return rc;
  }
  if (!message_ends.counts()) return native();
  MPI_Status own, *const given = status;
  if (given == MPI_STATUS_IGNORE) status = &own;
  const Nanoseconds posted = job_clocks().common_now();
  const int rc = native();
  if (rc == MPI_SUCCESS) count_received(place, comm, *status, bytes_received(*status), posted, waited);
  else message_ends.doubt_all();
  status = given;
  return rc;
}

template <typename Native>
int time_receive(const CallPlace& place, Native native, MPI_Comm comm, int from, int tag, MPI_Status*& status) {
  const auto counted = [&] { return count_receive(place, native, comm, from, tag, status, Waited::alone); };
  return time_receiving(place, counted, comm, from, tag, status);
}

/// As time_receiving(), of a call that leaves the message there.
template <typename Native>
int time_probe(const CallPlace& place, Native native, MPI_Comm comm, int from, int tag, MPI_Status*& status) {
  return time_receiving<false, true>(place, native, comm, from, tag, status);
}

/// Of a call that takes a message out of the order of receives.
template <typename Native>
int match_probed(const CallPlace& place, Native native, MPI_Comm comm, int from, int tag, MPI_Status*& status) {
  if (message_ends.counts()) message_ends.doubt(comm, from, tag, MessageEnds::Way::receive);
  return time_receiving<false>(place, native, comm, from, tag, status);
}

/// Of a call that sends to the rank `to` and receives from the rank `from` of `comm`. It waits for both of them; which
/// one came last is not known.
template <typename Native>
int time_exchanging(const CallPlace& place, Native native, MPI_Comm comm, int to, Payload sent, int send_tag, int from,
                    int tag, MPI_Status*& status) {
  if (to == MPI_PROC_NULL) return time_receiving(place, native, comm, from, tag, status);
  if (from == MPI_PROC_NULL) return time_sending(place, native, comm, to, send_tag, sent);
  MessageCall timed(place, times_this_call());
  const Rank peer = timed.has_site() ? peer_of(comm, to) : -1;
  const Source source(comm, from, timed.has_site());
  if (to == from && timed.has_site()) show_awaited(peer, tag);
  MPI_Status own;
  need_status(timed, status, own);
  const int rc = native();
  const Wait wait = timed.end();
  if (!timed.has_site() || rc != MPI_SUCCESS) return rc;
  count_message(*timed.site(), peer, sent.bytes());
  count_message(*timed.site(), -1, bytes_received(*status));
  if (!wait) [[likely]]
    return rc;
  waited_for(peer, wait);
  if (source_of(from, status) == to) return rc;
  waited_for(source.rank(status), wait);
  core::add_shared(wait.site->together, wait.time);
  return rc;
}

template <typename Native>
int time_exchange(const CallPlace& place, Native native, MPI_Comm comm, int to, Payload payload, int send_tag, int from,
                  int tag, MPI_Status*& status) {
  const auto counted = [&] {
    CountedMessage sent(comm, to, send_tag, MessageEnds::Way::send);
    const Waited waited = to == MPI_PROC_NULL ? Waited::alone : Waited::shared;
    const int rc = count_receive(place, native, comm, from, tag, status, waited);
    sent.end(place, rc, from == MPI_PROC_NULL ? Waited::alone : Waited::no, [&] { return payload.bytes(); });
    return rc;
  };
  return time_exchanging(place, counted, comm, to, payload, send_tag, from, tag, status);
}

/// Counts a message that a call starts. MPI may match others before one that names no source or no tag.
inline KeptNow count_start(MPI_Comm comm, int peer, int tag, bool receives) {
  const auto way = receives ? MessageEnds::Way::receive : MessageEnds::Way::send;
  if (comm != MPI_Comm{} && !(receives && is_wildcard(peer, tag))) [[likely]]
    return message_ends.count_message(comm, peer, tag, way);
  if (comm != MPI_Comm{}) message_ends.doubt(comm, peer, tag, way);
  return message_ends.count_unknown(way);
}

/// Of a call that makes a persistent request for messages to or from the rank `peer` of `comm`.
template <typename Native>
int make_persistent(const CallPlace& place, Native native, const MPI_Request* request, MPI_Comm comm, int peer, int tag,
                    bool receives, Payload payload) {
  end_polls();
  keep_on_disk_sometimes();
  const int rc = native();
  if (rc != MPI_SUCCESS || !times_this_call()) return rc;
  if (has_sites()) {
    count_calls(site_at(place), 1);
    const Rank rank = receives ? source_of_start(comm, peer) : peer_of(comm, peer);
    if (started_messages.note_persistent({*request, rank, receives},
                                         {comm, peer, tag, receives ? -1 : payload.bytes()}))
      return rc;
  }
  // Its starts are not seen.
  if (message_ends.counts())
    message_ends.doubt(comm, peer, tag, receives ? MessageEnds::Way::receive : MessageEnds::Way::send);
  return rc;
}

/// A persistent request starts, before MPI knows it. Counts its message. `site`: nullptr if the call does not count.
inline void count_persistent_start(MPI_Request request, profiles::TimedSite* site) {
  const bool numbers = message_ends.counts();
  if (!numbers && !site) return;
  started_messages.visit_persistent(request, [&](const StartedMessage& message, PersistentMessage& its) {
    if (site && !message.receives && its.peer != MPI_PROC_NULL) count_message(*site, message.peer, its.bytes);
    if (!numbers) return;
    const KeptNow kept = count_start(its.comm, its.peer, its.tag, message.receives);
    its.kept = message_ends.note_request(kept, request);
    if (its.kept != 0) [[unlikely]]
      message_ends.find(its.kept, request)->end.bytes = its.bytes;
  });
}

/// Of a call that starts a message to or from the rank `peer` of `comm`.
template <typename Native>
int start_message(const CallPlace& place, Native native, const MPI_Request* request, MPI_Comm comm, int peer, int tag,
                  bool receives, Payload payload) {
  end_polls();
  keep_on_disk_sometimes();
  const bool counts = Guard::program_calls() && has_sites();
  LocalCall timed(counts);
  const KeptNow kept = message_ends.counts() ? count_start(comm, peer, tag, receives) : KeptNow();
  const int rc = native();
  if (rc != MPI_SUCCESS) [[unlikely]]
    message_ends.doubt_all();
  if (!counts || rc != MPI_SUCCESS) return rc;
  profiles::TimedSite& site = site_at(place);
  count_calls(site, 1);
  timed.end(site);
  const std::uint16_t at = message_ends.note_request(kept, *request);
  const Rank to = note_started(*request, comm, peer, receives, at);
  if (receives || peer == MPI_PROC_NULL) return rc;
  const core::Bytes bytes = payload.bytes();
  if (at != 0) message_ends.find(at, *request)->end.bytes = bytes;
  count_message(site, to, bytes);
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

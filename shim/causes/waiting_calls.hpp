// SPDX-License-Identifier: BSD-3-Clause
// What latecomer does in MPI's calls that may wait and are no collectives, and in those that start a message. They add
// up their time by call sites and note for whom it waits. The generated handlers use these templates
// (shim/front/functions.def), and `native` is MPI's own call.
#pragma once

#include "shim/causes/usage.hpp"
#include "shim/causes/waits_for.hpp"
#include "shim/guard.hpp"
#include "shim/mpi/type_sizes.hpp"

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
int time_send(const CallPlace& place, Native native, MPI_Comm comm, int to, int tag, Payload payload) {
  MessageCall timed(place, times_this_call());
  const Rank peer = timed.has_site() ? show_awaited(comm, to, tag) : -1;
  const int rc = native();
  const Wait wait = timed.end();
  if (!timed.has_site() || rc != MPI_SUCCESS || to == MPI_PROC_NULL) return rc;
  if (wait) [[unlikely]]
    waited_for(peer, wait);
  count_message(*timed.site(), peer, payload.bytes());
  return rc;
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

/// The status of a receive tells its rank and its bytes: without one, MPI gets `own`.
inline void need_status(const MessageCall& timed, MPI_Status*& status, MPI_Status& own) {
  if (timed.has_site() && status == MPI_STATUS_IGNORE) status = &own;
}
inline int source_of(int from, const MPI_Status* status) { return from == MPI_ANY_SOURCE ? status->MPI_SOURCE : from; }

/// Of a call that waits for the rank `from` of `comm`. `takes`: the call receives the message.
template <bool takes = true, typename Native>
int time_receive(const CallPlace& place, Native native, MPI_Comm comm, int from, int tag, MPI_Status*& status) {
  MessageCall timed(place, times_this_call());
  if (timed.has_site()) show_awaited(comm, from, tag);
  MPI_Status own;
  need_status(timed, status, own);
  const int rc = native();
  if (const Wait wait = timed.end(); wait && rc == MPI_SUCCESS) [[unlikely]]
    waited_for(comm, source_of(from, status), wait);
  if (takes && timed.has_site() && rc == MPI_SUCCESS && from != MPI_PROC_NULL)
    count_message(*timed.site(), -1, bytes_received(*status));
  return rc;
}

/// As time_receive(), of a call that leaves the message there.
template <typename Native>
int time_probe(const CallPlace& place, Native native, MPI_Comm comm, int from, int tag, MPI_Status*& status) {
  return time_receive<false>(place, native, comm, from, tag, status);
}

/// Of a call that sends to the rank `to` and receives from the rank `from` of `comm`. It waits for both of them; which
/// one came last is not known.
template <typename Native>
int time_exchange(const CallPlace& place, Native native, MPI_Comm comm, int to, Payload sent, int send_tag, int from,
                  int tag, MPI_Status*& status) {
  if (to == MPI_PROC_NULL) return time_receive(place, native, comm, from, tag, status);
  if (from == MPI_PROC_NULL) return time_send(place, native, comm, to, send_tag, sent);
  MessageCall timed(place, times_this_call());
  if (to == from && timed.has_site()) show_awaited(comm, from, tag);
  MPI_Status own;
  need_status(timed, status, own);
  const int rc = native();
  const Wait wait = timed.end();
  if (!timed.has_site() || rc != MPI_SUCCESS) return rc;
  const Rank peer = peer_of(comm, to);
  count_message(*timed.site(), peer, sent.bytes());
  count_message(*timed.site(), -1, bytes_received(*status));
  if (!wait) [[likely]]
    return rc;
  const int source = source_of(from, status);
  waited_for(peer, wait);
  if (source == to) return rc;
  waited_for(comm, source, wait);
  wait.site->together += wait.time;
  return rc;
}

struct MessageKind {
  bool receives = false;
  bool persistent = false;
};

/// Of a call that starts a message to or from the rank `peer` of `comm`, or makes a persistent one.
template <typename Native>
int start_message(const CallPlace& place, Native native, const MPI_Request* request, MPI_Comm comm, int peer,
                  MessageKind kind, Payload payload) {
  end_polls();
  keep_on_disk_sometimes();
  const bool counts = mpi_time.watched && Guard::program_calls();
  LocalCall timed(counts);
  const int rc = native();
  if (!counts || rc != MPI_SUCCESS) return rc;
  profiles::TimedSite& site = timed_sites.at(place);
  ++site.sums.calls;
  timed.end(site.sums);
  const Rank to = note_started(*request, comm, peer, kind.receives, kind.persistent);
  if (!kind.receives && !kind.persistent && peer != MPI_PROC_NULL) count_message(site, to, payload.bytes());
  return rc;
}

}  // namespace latecomer::shim

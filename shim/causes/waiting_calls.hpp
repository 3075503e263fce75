// SPDX-License-Identifier: BSD-3-Clause
// What latecomer does in MPI's calls that may wait and are no collectives, and in those that start a message. They add
// up their time by call sites and note for whom it waits. The generated handlers use these templates
// (shim/front/functions.def), and `native` is MPI's own call.
#pragma once

#include "shim/causes/usage.hpp"
#include "shim/causes/waits_for.hpp"
#include "shim/guard.hpp"

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

/// Of a call that waits for the rank `to` of `comm`.
template <typename Native>
int time_send(const CallPlace& place, Native native, MPI_Comm comm, int to, int tag) {
  MessageCall timed(place, times_this_call());
  if (timed.has_site()) show_awaited(comm, to, tag);
  const int rc = native();
  if (const Wait wait = timed.end(); wait && rc == MPI_SUCCESS) [[unlikely]]
    waited_for(comm, to, wait);
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

/// A receive from any rank needs a status, which tells the rank: without one, MPI gets `own`.
inline void need_source(const MessageCall& timed, int from, MPI_Status*& status, MPI_Status& own) {
  if (timed.is_timed() && timed.has_site() && from == MPI_ANY_SOURCE && status == MPI_STATUS_IGNORE) status = &own;
}
inline int source_of(int from, const MPI_Status* status) { return from == MPI_ANY_SOURCE ? status->MPI_SOURCE : from; }

/// Of a call that waits for the rank `from` of `comm`.
template <typename Native>
int time_receive(const CallPlace& place, Native native, MPI_Comm comm, int from, int tag, MPI_Status*& status) {
  MessageCall timed(place, times_this_call());
  if (timed.has_site()) show_awaited(comm, from, tag);
  MPI_Status own;
  need_source(timed, from, status, own);
  const int rc = native();
  if (const Wait wait = timed.end(); wait && rc == MPI_SUCCESS) [[unlikely]]
    waited_for(comm, source_of(from, status), wait);
  return rc;
}

/// Of a call that sends to the rank `to` and receives from the rank `from` of `comm`. It waits for both of them; which
/// one came last is not known.
template <typename Native>
int time_exchange(const CallPlace& place, Native native, MPI_Comm comm, int to, int send_tag, int from, int tag,
                  MPI_Status*& status) {
  if (to == from || to == MPI_PROC_NULL) return time_receive(place, native, comm, from, tag, status);
  if (from == MPI_PROC_NULL) return time_send(place, native, comm, to, send_tag);
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

struct MessageKind {
  bool receives = false;
  bool persistent = false;
};

/// Of a call that starts a message to or from the rank `peer` of `comm`.
template <typename Native>
int start_message(Native native, const MPI_Request* request, MPI_Comm comm, int peer, MessageKind kind) {
  end_polls();
  keep_on_disk_sometimes();
  const int rc = native();
  if (mpi_time.watched && Guard::program_calls() && rc == MPI_SUCCESS)
    note_started(*request, comm, peer, kind.receives, kind.persistent);
  return rc;
}

}  // namespace latecomer::shim

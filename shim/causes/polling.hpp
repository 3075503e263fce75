// SPDX-License-Identifier: BSD-3-Clause
// What latecomer does in calls that ask whether a message has come: a stretch of unsuccessful ones may be a wait
// (shim/causes/poll_stretch.hpp). Its time counts as that of one call that waits. The generated handlers use these
// templates (shim/front/functions.def), and `native` is MPI's own call.
#pragma once

#include "shim/causes/poll_stretch.hpp"
#include "shim/causes/usage.hpp"
#include "shim/causes/waiting_calls.hpp"
#include "shim/causes/waits_for.hpp"
#include "shim/state/not_counted.hpp"

namespace latecomer::shim {

inline void Polling::begin_poll() {
  if (weight_ == 0) return keep_on_disk_sometimes();
  if (const Nanoseconds at = now(); stretch_.begin_poll(at)) [[unlikely]]
    end_piece();
}
inline void Polling::fail_poll(const CallPlace& place) {
  if (!mpi_time.polls) return begin_stretch(place);
  if (weight_ == 0) return;
  const Nanoseconds at = now();
  stretch_.end_poll(at, false);
  keep_on_disk(at);
}
inline Wait Polling::succeed() {
  if (!mpi_time.polls) return {};
  if (weight_ > 0) stretch_.end_poll(now(), true);
  return end_stretch();
}

/// Of this thread, if it has_sites().
inline Polling& polling() { return mpi_time.row->polling; }

/// One poll. `found`: what MPI answers, 0 if it found nothing.
class Poll {
 public:
  Poll(const CallPlace& place, const int& found)
      : place_(place),
        found_(found),
        counts_(times_this_call() && has_sites_or_declines()),
        continues_(counts_ && mpi_time.polls),
        alone_(counts_ && !continues_) {
    if (continues_) polling().begin_poll();
    else keep_on_disk_sometimes();
  }
  /// Whether a stretch counts.
  bool has_site() const { return counts_; }
  /// Whether a stretch is open.
  bool continues() const { return continues_; }
  static bool is_timed() { return true; }
  /// After MPI has answered without an error. Returns as Polling::succeed().
  Wait end() {
    // A call of MPI beneath this one may have begun a stretch.
    if (!counts_ || (mpi_time.polls && !continues_)) return {};
    if (found_) {
      if (!continues_) alone_.end_poll(place_);
      return polling().succeed();
    }
    if (!continues_) alone_.drop();
    polling().fail_poll(place_);
    return {};
  }

 private:
  static bool has_sites_or_declines() {
    if (has_sites()) [[likely]]
      return true;
    declined.add(profiles::Uncounted::other_threads);
    return false;
  }
  const CallPlace& place_;
  const int& found_;
  bool counts_, continues_;
  LocalCall alone_;  ///< if no stretch is open
};

inline void end_wait(Awaited& awaited, Poll& poll) {
  const Wait wait = poll.end();
  awaited.set_wait(wait);
  if (wait) awaited.end_polled(polling().site_key(), polling().waited());
}
inline void end_wait(Awaited& awaited, MessageCall& call) { awaited.set_wait(call.end()); }

/// Of a call that looks for a message of the rank `from` of `comm`, which may be any rank, as in time_receive().
/// `leaves`: the next receive takes the message.
template <bool leaves = true, typename Native>
int poll_for_message(const CallPlace& place, Native native, MPI_Comm comm, int from, int tag, const int& found,
                     MPI_Status*& status) {
  Poll poll(place, found);
  const Source source(comm, from, poll.continues());
  MPI_Status own;
  if (poll.has_site() && is_wildcard(from, tag) && status == MPI_STATUS_IGNORE) status = &own;
  const int rc = native();
  if (rc != MPI_SUCCESS) return rc;
  if (const Wait wait = poll.end()) [[unlikely]] {
    waited_for(source.rank(status), wait);
    if (leaves) note_probed(comm, from, tag, status, polling().site_key(), polling().waited());
  }
  return rc;
}

/// Of a call that takes a message out of the order of receives.
template <typename Native>
int poll_for_matched(const CallPlace& place, Native native, MPI_Comm comm, int from, int tag, const int& found,
                     MPI_Status*& status) {
  if (message_ends.counts()) message_ends.doubt(comm, from, tag, MessageEnds::Way::receive);
  return poll_for_message<false>(place, native, comm, from, tag, found, status);
}

template <typename Native>
int poll_without_peer(const CallPlace& place, Native native, const int& found) {
  Poll poll(place, found);
  const int rc = native();
  if (rc == MPI_SUCCESS) poll.end();
  return rc;
}

}  // namespace latecomer::shim

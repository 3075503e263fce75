// SPDX-License-Identifier: BSD-3-Clause
// What latecomer does in calls that ask whether a message has come: a stretch of unsuccessful ones may be a wait
// (shim/causes/poll_stretch.hpp). Its time counts as that of one call that waits. Only on the thread that started MPI,
// since the time of other threads is not added up. The generated handlers use these templates
// (shim/front/functions.def), and `native` is MPI's own call.
#pragma once

#include "shim/causes/poll_stretch.hpp"
#include "shim/causes/usage.hpp"
#include "shim/causes/waiting_calls.hpp"
#include "shim/causes/waits_for.hpp"
#include "shim/state/not_counted.hpp"

namespace latecomer::shim {

/// The open stretch of the watched thread, if mpi_time.polls.
class Polling {
 public:
  /// Call begin_poll() only if a stretch is open.
  void begin_poll() {
    if (weight_ == 0) return keep_on_disk_sometimes();
    if (const Nanoseconds at = now(); stretch_.begin_poll(at)) [[unlikely]]
      end_piece();
  }
  void fail_poll(const CallPlace& place) {
    if (!mpi_time.polls) return begin_stretch(place);
    if (weight_ == 0) return;
    const Nanoseconds at = now();
    stretch_.end_poll(at, false);
    keep_on_disk(at);
  }
  /// Returns the time of the stretch if it was a wait.
  Wait succeed() {
    if (!mpi_time.polls) return {};
    if (weight_ > 0) stretch_.end_poll(now(), true);
    return end_stretch();
  }
  Wait end_stretch();
  /// Of the last stretch that was a wait: its time, and the site of its first poll.
  Nanoseconds waited() const { return waited_; }
  const profiles::TimedKey& site_key() const { return site_->key; }

 private:
  void begin_stretch(const CallPlace& place);
  void end_piece();
  void end_code(bool waited);
  void add(const PollWait& wait);

  PollStretch stretch_;
  std::uint32_t weight_ = 0;             ///< 0: the stretch rests
  Nanoseconds waited_ = 0;               ///< in pieces that have ended
  profiles::TimedSite* site_ = nullptr;  ///< of the first poll
  bool shown_ = false;                   ///< `latecomer who` sees a wait
};
extern constinit Polling polling;

/// One poll. `found`: what MPI answers, 0 if it found nothing.
class Poll {
 public:
  Poll(const CallPlace& place, const int& found)
      : place_(place),
        found_(found),
        counts_(times_this_call()),
        continues_(counts_ && mpi_time.polls),
        alone_(counts_ && mpi_time.watched && !continues_) {
    if (counts_ && !mpi_time.watched) [[unlikely]] {
      declined.add(profiles::Uncounted::other_threads);
      counts_ = false;
    }
    if (continues_) polling.begin_poll();
    else keep_on_disk_sometimes();
  }
  bool counts() const { return counts_; }
  static bool is_timed() { return true; }
  /// After MPI has answered without an error. Returns as Polling::succeed().
  Wait end() {
    // A call of MPI beneath this one may have begun a stretch.
    if (!counts_ || (mpi_time.polls && !continues_)) return {};
    if (found_) {
      if (!continues_) alone_.end_poll(place_);
      return polling.succeed();
    }
    if (!continues_) alone_.drop();
    polling.fail_poll(place_);
    return {};
  }

 private:
  const CallPlace& place_;
  const int& found_;
  bool counts_, continues_;
  LocalCall alone_;  ///< if no stretch is open
};

inline void end_wait(Awaited& awaited, Poll& poll) {
  const Wait wait = poll.end();
  awaited.set_wait(wait);
  if (wait) awaited.end_polled(polling.site_key(), polling.waited());
}
inline void end_wait(Awaited& awaited, MessageCall& call) { awaited.set_wait(call.end()); }

/// Of a call that looks for a message of the rank `from` of `comm`, which may be any rank, as in time_receive().
/// `leaves`: the next receive takes the message.
template <bool leaves = true, typename Native>
int poll_for_message(const CallPlace& place, Native native, MPI_Comm comm, int from, int tag, const int& found,
                     MPI_Status*& status) {
  Poll poll(place, found);
  MPI_Status own;
  if (poll.counts() && is_wildcard(from, tag) && status == MPI_STATUS_IGNORE) status = &own;
  const int rc = native();
  if (rc != MPI_SUCCESS) return rc;
  if (const Wait wait = poll.end()) [[unlikely]] {
    waited_for(comm, source_of(from, status), wait);
    if (leaves) note_probed(comm, from, tag, status, polling.site_key(), polling.waited());
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

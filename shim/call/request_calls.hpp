// SPDX-License-Identifier: BSD-3-Clause
// What latecomer does in the calls that start, complete or free requests. The generated handlers of C and of Fortran
// use these templates (shim/front/functions.def), and `native` is MPI's own call. Handles and statuses have the same
// layout in both languages. While no observed request is pending, a call costs two loads.
#pragma once

#include <atomic>
#include <type_traits>

#include "shim/causes/polling.hpp"
#include "shim/causes/usage.hpp"
#include "shim/causes/waiting_calls.hpp"
#include "shim/causes/waits_for.hpp"
#include "shim/state/clocks.hpp"
#include "shim/state/process.hpp"

namespace latecomer::shim {

/// The index of the first request in the answers of MPI.
inline constexpr int kFirstInC = 0;
inline constexpr int kFirstInFortran = 1;

/// Observed requests that are not complete yet. They are in the table of requests.cpp.
extern constinit std::atomic<int> pending_requests;
inline bool any_request_pending() {
  return active.load(std::memory_order_relaxed) && pending_requests.load(std::memory_order_relaxed) > 0;
}

/// The observed requests among `requests`, as they were before the completing call.
class WatchedRequests {
 public:
  WatchedRequests(int count, const MPI_Request* requests) {
    if (any_request_pending()) find_observed(count, requests);
  }
  /// All requests are complete.
  void complete_all() const {
    if (found_ > 0) finish_all();
  }
  /// The request with that index is complete. MPI_UNDEFINED matches none.
  void complete_one(int index) const {
    if (found_ > 0) finish_one(index);
  }

 private:
  void find_observed(int count, const MPI_Request* requests);
  void finish_all() const;
  void finish_one(int index) const;

  // Observed requests in one completion call. Derived: 2 KiB of the caller's stack. The requests beyond are not
  // counted. Their entries stay in the table until MPI uses the handle for another request.
  static constexpr int kMost = 256;
  int found_ = 0;
  int at_[kMost];
  MPI_Request was_[kMost];
};

// The requests that a call has completed, once MPI has answered. `first`: the index of the first request.
inline constexpr auto all_requests = [](const auto& requests) { requests.complete_all(); };
inline auto one_request(const int& index, int first) {
  return [&index, first](const auto& requests) { requests.complete_one(index - first); };
}
inline auto some_requests(const int& count, const int* indices, int first) {
  return [&count, indices, first](const auto& requests) {
    for (int i = 0; count != MPI_UNDEFINED && i < count; ++i) requests.complete_one(indices[i] - first);
  };
}
template <typename Completed>
auto if_set(const int& flag, Completed completed) {
  return [&flag, completed](const auto& requests) {
    if (flag) completed(requests);
  };
}

/// Runs a completion call, a MessageCall or a Poll, which has no `place`. `completed` says which requests are complete.
/// The time of the wait goes to the ranks of their messages. `status`: of the one that is complete, if the call
/// completes one.
template <typename Native, typename Completed, typename Call>
int complete_requests(int count, MPI_Request* requests, Native native, Completed completed, Call& timed,
                      const CallPlace* place, const MPI_Status* status = nullptr) {
  const WatchedRequests watch(count, requests);
  if (!mpi_time.watched || (std::is_same_v<const Completed, decltype(all_requests)> && !timed.is_timed())) {
    started_messages.forget_completed(count, requests);  // before MPI overwrites the handles
    const int rc = native();
    if (rc == MPI_SUCCESS) completed(watch);
    return rc;
  }
  const auto complete_watched = [&]() __attribute__((noinline)) {
    Awaited awaited(count, requests);
    if (place) awaited.begin_kept(*place);
    const int rc = native();
    if (rc == MPI_SUCCESS) {
      awaited.end_kept();
      awaited.set_wait(timed.end());
      if (status) awaited.set_source(status->MPI_SOURCE);
      completed(watch);
      completed(awaited);
    }
    awaited.forget_completed(requests);
    return rc;
  };
  return complete_watched();
}

/// `found`: what MPI answers, 0 if no request is complete.
template <typename Native, typename Completed>
int test_requests(const CallPlace& place, int count, MPI_Request* requests, Native native, const int& found,
                  Completed completed) {
  if (count == 1 && *requests == MPI_REQUEST_NULL) {  // no success, in a loop over requests of which some are complete
    keep_on_disk_sometimes();
    return native();
  }
  Poll poll(place, found);
  return complete_requests(count, requests, native, if_set(found, completed), poll, nullptr);
}

/// As test_requests(), of a call that leaves the requests as they are.
template <typename Native, typename Completed>
int look_at_requests(const CallPlace& place, int count, const MPI_Request* requests, Native native, const int& found,
                     Completed completed) {
  Poll poll(place, found);
  if (!poll.counts()) return native();
  Awaited awaited(count, requests);
  const int rc = native();
  if (rc == MPI_SUCCESS) {
    awaited.set_wait(poll.end());
    if (found) completed(awaited);
  }
  return rc;
}

template <typename Native, typename Completed>
int wait_for_requests(const CallPlace& place, int count, MPI_Request* requests, Native native, Completed completed) {
  MessageCall timed(place, times_this_call());
  if (count == 1 && timed.has_site()) live_await(started_messages.find_message(*requests).peer);
  return complete_requests(count, requests, native, completed, timed, &place);
}

/// Of MPI_Wait and MPI_Waitany.
template <typename Native, typename Completed, typename Status>
int wait_for_request(const CallPlace& place, int count, MPI_Request* requests, Native native, Completed completed,
                     Status*& status) {
  if constexpr (std::is_same_v<Status, MPI_Status>) {
    MessageCall timed(place, times_this_call());
    if (count == 1 && timed.has_site()) live_await(started_messages.find_message(*requests).peer);
    MPI_Status own;
    need_status(timed, status, own);
    return complete_requests(count, requests, native, completed, timed, &place, timed.has_site() ? status : nullptr);
  } else {  // a status of mpi_f08
    return wait_for_requests(place, count, requests, native, completed);
  }
}

/// Of MPI_Waitall, which does not tell the message that came last.
template <typename Native>
int wait_for_all_requests(const CallPlace& place, int count, MPI_Request* requests, Native native) {
  MessageCall timed(place, times_this_call());
  if (timed.is_timed() && timed.has_site() && !any_request_pending() && may_wait_in_turn(count, requests)) {
    const Nanoseconds begin = job_clocks().common_now();
    const StartedMessage last = wait_in_turn(count, requests);
    started_messages.forget_completed(count, requests);  // before MPI overwrites the handles
    const int rc = native();
    const Nanoseconds end = last.kept != 0 ? job_clocks().common_now() : 0;
    const Wait wait = timed.end();
    if (rc != MPI_SUCCESS) return rc;
    if (KeptMessage* const kept = message_ends.find(last.kept, last.request)) [[unlikely]]
      MessageEnds::note_wait(*kept, place, begin, end, Waited::alone);
    if (wait) waited_for(last.peer, wait);
    return rc;
  }
  return complete_requests(count, requests, native, all_requests, timed, &place);
}

/// Notes the start of persistent collectives.
void note_persistent_start(int count, const MPI_Request* requests);

template <typename Native>
int start_requests(const CallPlace& place, int count, MPI_Request* requests, Native native) {
  end_polls();
  keep_on_disk_sometimes();
  if (any_request_pending()) note_persistent_start(count, requests);
  const bool counts = mpi_time.watched && Guard::program_calls();
  LocalCall timed(counts);
  const int rc = native();
  if (!counts) return rc;
  profiles::TimedSums& site = timed_sites.at(place).sums;
  ++site.calls;
  timed.end(site);
  return rc;
}

/// The handle of an observed request becomes invalid.
void forget_request(MPI_Request request);

template <typename Native>
int free_request(MPI_Request* request, Native native) {
  started_messages.forget_message(*request);
  if (any_request_pending()) forget_request(*request);
  return native();
}

}  // namespace latecomer::shim

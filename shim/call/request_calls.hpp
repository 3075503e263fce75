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

/// The index of the first request in the answers of MPI, in C. In mpi_f08 it is first_in_f08.
inline constexpr int kFirstInC = 0;

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
  /// All requests are complete. Their sources do not matter here.
  void complete_all(int /*source*/) const {
    if (found_ > 0) finish_all();
  }
  /// The request with that index is complete. MPI_UNDEFINED matches none.
  void complete_one(int index, int /*source*/) const {
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

/// For a call whose statuses do not tell for whom it waited.
struct NoStatus {};
inline constinit NoStatus* no_status = nullptr;

/// Whether the program ignores these statuses, which are of C or, without a type, of mpi_f08.
template <typename Status>
bool are_ignored(const Status* statuses) {
  const void* const given = statuses;
  if (std::is_void_v<Status> && (given == ignored_in_f08.status || given == ignored_in_f08.statuses)) return true;
  return given == MPI_STATUS_IGNORE || given == MPI_STATUSES_IGNORE;
}
/// Whether such statuses can be read and replaced. Those of mpi_f08 have the layout of C.
template <typename Status>
bool can_read() {
  if (std::is_void_v<Status>) return ignored_in_f08.status && ignored_in_f08.statuses;
  return std::is_same_v<Status, MPI_Status>;
}

/// The source of the message with that index among those that are complete; negative: not known.
template <typename Status>
int source_in(const Status* statuses, int index) {
  if (!can_read<Status>() || !statuses || are_ignored(statuses)) return -1;
  return static_cast<const MPI_Status*>(static_cast<const void*>(statuses))[index].MPI_SOURCE;
}

// The requests that a call has completed, once MPI has answered. `first`: the index of the first request.
template <typename Status>
struct AllRequests {
  Status* const& status;
  void operator()(const auto& requests) const { requests.complete_all(source_in(status, 0)); }
};
template <typename Status>
auto all_requests(Status* const& status) {
  return AllRequests<Status>{status};
}
template <typename Status>
auto one_request(const int& index, int first, Status* const& status) {
  return [&index, first, &status](const auto& requests) { requests.complete_one(index - first, source_in(status, 0)); };
}
template <typename Status>
auto some_requests(const int& count, const int* indices, int first, Status* const& statuses) {
  return [&count, indices, first, &statuses](const auto& requests) {
    for (int i = 0; count != MPI_UNDEFINED && i < count; ++i)
      requests.complete_one(indices[i] - first, source_in(statuses, i));
  };
}
template <typename Completed>
auto if_set(const int& flag, Completed completed) {
  return [&flag, completed](const auto& requests) {
    if (flag) completed(requests);
  };
}

/// Whether a call completes all its requests or none, and returns after that.
template <typename Completed>
inline constexpr bool kWaitsForAll = false;
template <typename Status>
inline constexpr bool kWaitsForAll<AllRequests<Status>> = true;

/// Gives MPI room for statuses in place of those that the program ignores, where they tell the sources of messages.
template <typename Status>
class Statuses {
 public:
  Statuses(Status*& given, int count, bool needed) {
    if (needed && can_read<Status>() && are_ignored(given) && count <= kMost)
      given = static_cast<Status*>(static_cast<void*>(own_));
  }

 private:
  static constexpr int kMost = 64;  // derived: 1.5 KiB of the stack
  MPI_Status own_[kMost];           // without initial values
};

/// Runs a completion call, a MessageCall or a Poll, which has no `place`. `completed` says which requests are complete.
/// The time of the wait goes to the ranks of their messages.
template <typename Native, typename Completed, typename Call>
int complete_requests(int count, MPI_Request* requests, Native native, Completed completed, Call& timed,
                      const CallPlace* place) {
  const WatchedRequests watch(count, requests);
  if (!timed.has_site() || (kWaitsForAll<Completed> && !timed.is_timed())) {
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
      end_wait(awaited, timed);
      completed(watch);
      completed(awaited);
    }
    awaited.forget_completed(requests);
    return rc;
  };
  return complete_watched();
}

/// `found`: what MPI answers, 0 if no request is complete.
template <typename Native, typename Completed, typename Status>
int test_requests(const CallPlace& place, int count, MPI_Request* requests, Native native, const int& found,
                  Completed completed, Status*& statuses) {
  if (count == 1 && *requests == MPI_REQUEST_NULL) {  // no success, in a loop over requests of which some are complete
    keep_on_disk_sometimes();
    return native();
  }
  Poll poll(place, found);
  const Statuses needed(statuses, count, poll.has_site());
  return complete_requests(count, requests, native, if_set(found, completed), poll, nullptr);
}

/// As test_requests(), of a call that leaves the requests as they are.
template <typename Native, typename Completed, typename Status>
int look_at_requests(const CallPlace& place, int count, const MPI_Request* requests, Native native, const int& found,
                     Completed completed, Status*& statuses) {
  Poll poll(place, found);
  if (!poll.has_site()) return native();
  const Statuses needed(statuses, count, true);
  Awaited awaited(count, requests);
  const int rc = native();
  if (rc == MPI_SUCCESS) {
    end_wait(awaited, poll);
    if (found) completed(awaited);
  }
  return rc;
}

/// Of MPI_Wait, MPI_Waitany and MPI_Waitsome.
template <typename Native, typename Completed, typename Status>
int wait_for_requests(const CallPlace& place, int count, MPI_Request* requests, Native native, Completed completed,
                      Status*& statuses) {
  MessageCall timed(place, times_this_call());
  if (count == 1 && timed.has_site()) show_awaited(started_messages.find_message(*requests).peer);
  const Statuses needed(statuses, count, timed.has_site());
  return complete_requests(count, requests, native, completed, timed, &place);
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
  return complete_requests(count, requests, native, all_requests(no_status), timed, &place);
}

/// Notes the start of persistent collectives.
void note_persistent_start(int count, const MPI_Request* requests);

template <typename Native>
int start_requests(const CallPlace& place, int count, MPI_Request* requests, Native native) {
  end_polls();
  keep_on_disk_sometimes();
  if (any_request_pending()) note_persistent_start(count, requests);
  const bool counts = Guard::program_calls() && has_sites();
  profiles::TimedSite* const site = counts ? &site_at(place) : nullptr;
  for (int i = 0; i < count; ++i) count_persistent_start(requests[i], site);
  LocalCall timed(counts);
  const int rc = native();
  if (rc != MPI_SUCCESS) [[unlikely]]
    message_ends.doubt_all();
  if (!counts) return rc;
  count_calls(*site, 1);
  timed.end(*site);
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

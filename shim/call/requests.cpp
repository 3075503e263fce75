// SPDX-License-Identifier: BSD-3-Clause
// The completion calls. Their wrappers notice when an observed request completes. While no observed request is pending,
// they cost two loads.
#include "shim/call/requests.hpp"

#include <atomic>

#include "shim/causes/waits_for.hpp"
#include "shim/guard.hpp"
#include "shim/mpi/level.hpp"

namespace latecomer::shim {
namespace {

// Derived: 1,024 entries of 80 bytes take 80 KiB per process, and a search of a full table takes 0.33 us (measured, one
// quiet core). Beyond, a non-blocking call is counted without an exit. The operations of a persistent request are not
// counted.
constexpr int kTable = 1024;
constinit PendingCall table[kTable];
std::atomic<int> pending{0};
std::mutex table_mutex;
int high = 0;  // entries in use lie below

PendingCall* find(MPI_Request request) {
  for (int i = 0; i < high; ++i)
    if (table[i].request == request && request != MPI_Request{}) return &table[i];
  return nullptr;
}

void drop(PendingCall& call) {
  call.request = {};
  pending.fetch_sub(1, std::memory_order_relaxed);
  while (high > 0 && table[high - 1].request == MPI_Request{}) --high;
}

void finish(MPI_Request request, Nanoseconds exit) {
  const std::lock_guard lock(table_mutex);
  PendingCall* call = find(request);
  if (!call || (call->persistent && !call->started)) return;
  call->record.exit = exit;
  finish_later(call->state, call->n, call->record, call->comm_size, call->rested, call->share);
  if (call->persistent) call->started = false;
  else drop(*call);
}

bool watching() { return active.load(std::memory_order_relaxed) && pending.load(std::memory_order_relaxed) > 0; }

/// The observed requests among `requests`, as they were before the completing call.
class Watch {
 public:
  Watch(int count, const MPI_Request* requests) {
    if (!watching()) return;
    const std::lock_guard lock(table_mutex);
    for (int i = 0; i < count && found_ < kMost; ++i)
      if (requests[i] != MPI_REQUEST_NULL && find(requests[i])) at_[found_] = i, was_[found_++] = requests[i];
  }
  void all_done() const {
    if (found_ == 0) return;
    const Nanoseconds exit = common_now();
    for (int k = 0; k < found_; ++k) finish(was_[k], exit);
  }
  void done(int index) const {  // MPI_UNDEFINED matches none
    for (int k = 0; k < found_; ++k)
      if (at_[k] == index) finish(was_[k], common_now());
  }

 private:
  // Observed requests in one completion call. Derived: 2 KiB of the caller's stack. The requests beyond are not
  // counted. Their entries stay in the table until MPI uses the handle for another request.
  static constexpr int kMost = 256;
  int found_ = 0;
  int at_[kMost];
  MPI_Request was_[kMost];
};

/// Runs a completion call. `complete` calls MPI. `account` says which requests are complete. `timed`: of a call that
/// waits, whose time then goes to the ranks of its messages.
template <typename Complete, typename Account>
int completing(int count, MPI_Request* requests, Complete complete, Account account, TimedCall* timed = nullptr) {
  if (!timed) keep_on_disk_sometimes();
  const Watch watch(count, requests);
  if (!mpi_time.watched) {
    const int rc = complete();
    if (rc == MPI_SUCCESS) account(watch);
    return rc;
  }
  return [&]() __attribute__((noinline)) {
    Awaited awaited(count, requests);
    const int rc = complete();
    if (rc == MPI_SUCCESS) {
      if (timed) awaited.waited(timed->end());
      account(watch), account(awaited);
    }
    return rc;
  }
  ();
}

template <typename Complete, typename Account>
int waiting(int count, MPI_Request* requests, Complete complete, Account account) {
  TimedCall timed(mpi_time.messages, timing.load(std::memory_order_relaxed) && Guard::program_calls());
  return completing(count, requests, complete, account, &timed);
}

/// The requests that a call has completed: all, that one, or all if the flag is set. `base`: the index of the first
/// request, 1 in Fortran.
constexpr auto everything = [](const auto& requests) { requests.all_done(); };
auto the_one(const int& index, int base) {
  return [&index, base](const auto& requests) { requests.done(index - base); };
}
auto some(const int& count, const int* indices, int base) {
  return [&count, indices, base](const auto& requests) {
    for (int i = 0; count != MPI_UNDEFINED && i < count; ++i) requests.done(indices[i] - base);
  };
}
auto if_set(const int& flag, auto account) {
  return [&flag, account](const auto& requests) {
    if (flag) account(requests);
  };
}
void start_persistent(int count, const MPI_Request* requests) {
  keep_on_disk_sometimes();
  if (!watching()) return;
  const std::lock_guard lock(table_mutex);
  for (int i = 0; i < count; ++i) {
    PendingCall* call = find(requests[i]);
    if (!call || !call->persistent) continue;
    call->record.arrival = common_now();
    call->record.exit = 0;
    call->started = true;
  }
}

void forget_request(MPI_Request request) {
  if (mpi_time.watched) started_messages.forget(request);
  if (!watching()) return;
  const std::lock_guard lock(table_mutex);
  if (PendingCall* call = find(request)) drop(*call);
}

}  // namespace

void note_pending(const PendingCall& call) {
  if (mpi_time.watched) started_messages.forget(call.request);
  const std::lock_guard lock(table_mutex);
  // MPI uses the handle again: its former operation completed in a call that latecomer does not intercept.
  if (PendingCall* stale = find(call.request)) drop(*stale);
  int slot = 0;
  while (slot < kTable && table[slot].request != MPI_Request{}) ++slot;
  if (slot == kTable) {
    profiles::CallRecord record = call.record;  // counted, exit unknown
    if (!call.persistent) finish_later(call.state, call.n, record, call.comm_size, call.rested, call.share);
    return;
  }
  table[slot] = call;
  if (slot >= high) high = slot + 1;
  pending.fetch_add(1, std::memory_order_relaxed);
}

void forget_pending(const CommState* state) {
  if (pending.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(table_mutex);
  for (int i = 0; i < high; ++i)
    if (table[i].state == state) table[i].state = nullptr;
}

// Each completion call has two entry points, because MPICH's mpi_f08 binding bypasses the C level. Its statuses and
// request handles have the layout of C in memory. ierror is optional.
LATECOMER_LEVELS(int, MPI_Wait, (MPI_Request * request, MPI_Status* status), (request, status), {
  return waiting(
      1, request, [&] { return NEXT(request, status); }, everything);
})
LATECOMER_F08_ENTRY(void, mpi_wait_f08_, (MPI_Request * request, void* status, int* ierror)) {
  int rc = MPI_SUCCESS;
  waiting(
      1, request, [&] { return next::mpi_wait_f08_(request, status, &rc), rc; }, everything);
  if (ierror) *ierror = rc;
}
LATECOMER_LEVELS(int, MPI_Waitall, (int count, MPI_Request* requests, MPI_Status* statuses),
                 (count, requests, statuses), {
                   return waiting(
                       count, requests, [&] { return NEXT(count, requests, statuses); }, everything);
                 })
LATECOMER_F08_ENTRY(void, mpi_waitall_f08_, (const int* count, MPI_Request* requests, void* statuses, int* ierror)) {
  int rc = MPI_SUCCESS;
  waiting(
      *count, requests, [&] { return next::mpi_waitall_f08_(count, requests, statuses, &rc), rc; }, everything);
  if (ierror) *ierror = rc;
}
LATECOMER_LEVELS(int, MPI_Waitany, (int count, MPI_Request* requests, int* index, MPI_Status* status),
                 (count, requests, index, status), {
                   return waiting(
                       count, requests, [&] { return NEXT(count, requests, index, status); }, the_one(*index, 0));
                 })
LATECOMER_F08_ENTRY(void, mpi_waitany_f08_,
                    (const int* count, MPI_Request* requests, int* index, void* status, int* ierror)) {
  int rc = MPI_SUCCESS;
  waiting(
      *count, requests, [&] { return next::mpi_waitany_f08_(count, requests, index, status, &rc), rc; },
      the_one(*index, 1));
  if (ierror) *ierror = rc;
}
LATECOMER_LEVELS(int, MPI_Waitsome, (int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses),
                 (count, requests, done, indices, statuses), {
                   return waiting(
                       count, requests, [&] { return NEXT(count, requests, done, indices, statuses); },
                       some(*done, indices, 0));
                 })
LATECOMER_F08_ENTRY(void, mpi_waitsome_f08_,
                    (const int* count, MPI_Request* requests, int* done, int* indices, void* statuses, int* ierror)) {
  int rc = MPI_SUCCESS;
  waiting(
      *count, requests, [&] { return next::mpi_waitsome_f08_(count, requests, done, indices, statuses, &rc), rc; },
      some(*done, indices, 1));
  if (ierror) *ierror = rc;
}
LATECOMER_LEVELS(int, MPI_Test, (MPI_Request * request, int* flag, MPI_Status* status), (request, flag, status), {
  return completing(
      1, request, [&] { return NEXT(request, flag, status); }, if_set(*flag, everything));
})
LATECOMER_F08_ENTRY(void, mpi_test_f08_, (MPI_Request * request, int* flag, void* status, int* ierror)) {
  int rc = MPI_SUCCESS;
  completing(
      1, request, [&] { return next::mpi_test_f08_(request, flag, status, &rc), rc; }, if_set(*flag, everything));
  if (ierror) *ierror = rc;
}
LATECOMER_LEVELS(int, MPI_Testall, (int count, MPI_Request* requests, int* flag, MPI_Status* statuses),
                 (count, requests, flag, statuses), {
                   return completing(
                       count, requests, [&] { return NEXT(count, requests, flag, statuses); },
                       if_set(*flag, everything));
                 })
LATECOMER_F08_ENTRY(void, mpi_testall_f08_,
                    (const int* count, MPI_Request* requests, int* flag, void* statuses, int* ierror)) {
  int rc = MPI_SUCCESS;
  completing(
      *count, requests, [&] { return next::mpi_testall_f08_(count, requests, flag, statuses, &rc), rc; },
      if_set(*flag, everything));
  if (ierror) *ierror = rc;
}
LATECOMER_LEVELS(int, MPI_Testany, (int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status),
                 (count, requests, index, flag, status), {
                   return completing(
                       count, requests, [&] { return NEXT(count, requests, index, flag, status); },
                       if_set(*flag, the_one(*index, 0)));
                 })
LATECOMER_F08_ENTRY(void, mpi_testany_f08_,
                    (const int* count, MPI_Request* requests, int* index, int* flag, void* status, int* ierror)) {
  int rc = MPI_SUCCESS;
  completing(
      *count, requests, [&] { return next::mpi_testany_f08_(count, requests, index, flag, status, &rc), rc; },
      if_set(*flag, the_one(*index, 1)));
  if (ierror) *ierror = rc;
}
LATECOMER_LEVELS(int, MPI_Testsome, (int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses),
                 (count, requests, done, indices, statuses), {
                   return completing(
                       count, requests, [&] { return NEXT(count, requests, done, indices, statuses); },
                       some(*done, indices, 0));
                 })
LATECOMER_F08_ENTRY(void, mpi_testsome_f08_,
                    (const int* count, MPI_Request* requests, int* done, int* indices, void* statuses, int* ierror)) {
  int rc = MPI_SUCCESS;
  completing(
      *count, requests, [&] { return next::mpi_testsome_f08_(count, requests, done, indices, statuses, &rc), rc; },
      some(*done, indices, 1));
  if (ierror) *ierror = rc;
}
LATECOMER_LEVELS(int, MPI_Start, (MPI_Request * request), (request), {
  start_persistent(1, request);
  return NEXT(request);
})
LATECOMER_F08_ENTRY(void, mpi_start_f08_, (MPI_Request * request, int* ierror)) {
  start_persistent(1, request);
  next::mpi_start_f08_(request, ierror);
}
LATECOMER_LEVELS(int, MPI_Startall, (int count, MPI_Request* requests), (count, requests), {
  start_persistent(count, requests);
  return NEXT(count, requests);
})
LATECOMER_F08_ENTRY(void, mpi_startall_f08_, (const int* count, MPI_Request* requests, int* ierror)) {
  start_persistent(*count, requests);
  next::mpi_startall_f08_(count, requests, ierror);
}
LATECOMER_LEVELS(int, MPI_Request_free, (MPI_Request * request), (request), {
  forget_request(*request);
  return NEXT(request);
})
LATECOMER_F08_ENTRY(void, mpi_request_free_f08_, (MPI_Request * request, int* ierror)) {
  forget_request(*request);
  next::mpi_request_free_f08_(request, ierror);
}

}  // namespace latecomer::shim

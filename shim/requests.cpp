// SPDX-License-Identifier: BSD-3-Clause
// The completion calls: wrappers that notice when an observed request completes. While no observed request
// is under way they cost one load.
#include "shim/requests.hpp"

#include <atomic>

#include "shim/intercept.hpp"

namespace latecomer::shim {
namespace {

constexpr int kTable = 1024;
PendingCall table[kTable];
std::atomic<int> pending{0};
std::mutex table_mutex;
int high = 0;  // entries in use lie below

PendingCall* find(MPI_Request request) {
  for (int i = 0; i < high; ++i)
    if (table[i].request == request && table[i].request != MPI_REQUEST_NULL) return &table[i];
  return nullptr;
}

void drop(PendingCall& call) {
  call.request = MPI_REQUEST_NULL;
  pending.fetch_sub(1, std::memory_order_relaxed);
  while (high > 0 && table[high - 1].request == MPI_REQUEST_NULL) --high;
}

void finish(MPI_Request request, Nanoseconds exit) {
  const std::lock_guard lock(table_mutex);
  PendingCall* call = find(request);
  if (!call || (call->persistent && !call->started)) return;
  call->record.exit = exit;
  finish_record(call->state, call->n, call->record, call->comm_size);
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
  void done(int index) const {
    for (int k = 0; k < found_; ++k)
      if (at_[k] == index) finish(was_[k], common_now());
  }

 private:
  static constexpr int kMost = 256;  // observed requests completed by one call; more lose their exit time
  int found_ = 0;
  int at_[kMost];
  MPI_Request was_[kMost];
};

void start_persistent(MPI_Request request) {
  const std::lock_guard lock(table_mutex);
  PendingCall* call = find(request);
  if (!call || !call->persistent) return;
  call->record.arrival = common_now();
  call->record.exit = 0;
  call->started = true;
}

}  // namespace

void note_pending(const PendingCall& call) {
  const std::lock_guard lock(table_mutex);
  int slot = 0;
  while (slot < kTable && table[slot].request != MPI_REQUEST_NULL) ++slot;
  if (slot == kTable) {
    profiles::CallRecord record = call.record;  // counted, exit unknown
    if (!call.persistent) finish_record(call.state, call.n, record, call.comm_size);
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

}  // namespace latecomer::shim

using namespace latecomer::shim;

extern "C" {

LATECOMER_EXPORT int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  const Watch watch(1, request);
  const int rc = PMPI_Wait(request, status);
  watch.all_done();
  return rc;
}
LATECOMER_EXPORT int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  const Watch watch(count, requests);
  const int rc = PMPI_Waitall(count, requests, statuses);
  watch.all_done();
  return rc;
}
LATECOMER_EXPORT int MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  const Watch watch(count, requests);
  const int rc = PMPI_Waitany(count, requests, index, status);
  if (rc == MPI_SUCCESS && *index != MPI_UNDEFINED) watch.done(*index);
  return rc;
}
LATECOMER_EXPORT int MPI_Waitsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  const Watch watch(count, requests);
  const int rc = PMPI_Waitsome(count, requests, done, indices, statuses);
  for (int i = 0; rc == MPI_SUCCESS && *done != MPI_UNDEFINED && i < *done; ++i) watch.done(indices[i]);
  return rc;
}
LATECOMER_EXPORT int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  const Watch watch(1, request);
  const int rc = PMPI_Test(request, flag, status);
  if (rc == MPI_SUCCESS && *flag) watch.all_done();
  return rc;
}
LATECOMER_EXPORT int MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  const Watch watch(count, requests);
  const int rc = PMPI_Testall(count, requests, flag, statuses);
  if (rc == MPI_SUCCESS && *flag) watch.all_done();
  return rc;
}
LATECOMER_EXPORT int MPI_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  const Watch watch(count, requests);
  const int rc = PMPI_Testany(count, requests, index, flag, status);
  if (rc == MPI_SUCCESS && *flag && *index != MPI_UNDEFINED) watch.done(*index);
  return rc;
}
LATECOMER_EXPORT int MPI_Testsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  const Watch watch(count, requests);
  const int rc = PMPI_Testsome(count, requests, done, indices, statuses);
  for (int i = 0; rc == MPI_SUCCESS && *done != MPI_UNDEFINED && i < *done; ++i) watch.done(indices[i]);
  return rc;
}
LATECOMER_EXPORT int MPI_Start(MPI_Request* request) {
  if (watching()) start_persistent(*request);
  return PMPI_Start(request);
}
LATECOMER_EXPORT int MPI_Startall(int count, MPI_Request* requests) {
  for (int i = 0; i < count && watching(); ++i) start_persistent(requests[i]);
  return PMPI_Startall(count, requests);
}
LATECOMER_EXPORT int MPI_Request_free(MPI_Request* request) {
  if (watching()) {
    const std::lock_guard lock(table_mutex);
    if (PendingCall* call = find(*request)) drop(*call);
  }
  return PMPI_Request_free(request);
}

}  // extern "C"

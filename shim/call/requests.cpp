// SPDX-License-Identifier: BSD-3-Clause
// The table of pending requests, and what the calls for requests do in it.
#include "shim/call/requests.hpp"

#include "shim/call/record.hpp"
#include "shim/call/request_calls.hpp"
#include "shim/state/clocks.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/not_counted.hpp"

namespace latecomer::shim {

constinit std::atomic<int> pending_requests{0};

namespace {

// Derived: 1,024 entries of 80 bytes take 80 KiB per process, and a search of a full table takes 0.33 us (measured, one
// quiet core). Beyond, a non-blocking call is counted without an exit. The operations of a persistent request are not
// counted.
constexpr int kTable = 1024;
constinit PendingCall table[kTable];
std::mutex table_mutex;
int high = 0;  // entries in use lie below

PendingCall* find(MPI_Request request) {
  for (int i = 0; i < high; ++i)
    if (table[i].request == request && request != MPI_Request{}) return &table[i];
  return nullptr;
}

/// The end of the operation was not seen.
void lose_operation(const PendingCall& call) {
  if (!call.persistent || call.started) declined.add(profiles::Uncounted::requests);
}

void drop(PendingCall& call) {
  call.request = {};
  pending_requests.fetch_sub(1, std::memory_order_relaxed);
  while (high > 0 && table[high - 1].request == MPI_Request{}) --high;
}

void finish(MPI_Request request, Nanoseconds exit) {
  const std::lock_guard lock(table_mutex);
  PendingCall* call = find(request);
  if (!call || (call->persistent && !call->started)) return;
  call->record.exit = exit;
  record_completion(*call);
  if (call->persistent) call->started = false;
  else drop(*call);
}

}  // namespace

void WatchedRequests::find_observed(int count, const MPI_Request* requests) {
  const std::lock_guard lock(table_mutex);
  for (int i = 0; i < count && found_ < kMost; ++i) {
    if (requests[i] == MPI_REQUEST_NULL || !find(requests[i])) continue;
    at_[found_] = i;
    was_[found_] = requests[i];
    ++found_;
  }
}

void WatchedRequests::finish_all() const {
  const Nanoseconds exit = job_clocks().common_now();
  for (int k = 0; k < found_; ++k) finish(was_[k], exit);
}

void WatchedRequests::finish_one(int index) const {
  for (int k = 0; k < found_; ++k)
    if (at_[k] == index) finish(was_[k], job_clocks().common_now());
}

void note_persistent_start(int count, const MPI_Request* requests) {
  const std::lock_guard lock(table_mutex);
  for (int i = 0; i < count; ++i) {
    PendingCall* call = find(requests[i]);
    if (!call || !call->persistent) continue;
    lose_operation(*call);  // it is still started if a call completed more requests than it looks at
    call->record.arrival = job_clocks().common_now();
    call->record.exit = 0;
    call->started = true;
  }
}

void forget_request(MPI_Request request) {
  const std::lock_guard lock(table_mutex);
  if (PendingCall* call = find(request)) drop(*call);
}

void note_pending(const PendingCall& call) {
  started_messages.forget_message(call.request);
  const std::lock_guard lock(table_mutex);
  // MPI uses the handle again: its former operation completed in a call that latecomer does not intercept.
  if (PendingCall* stale = find(call.request)) {
    lose_operation(*stale);
    drop(*stale);
  }
  int slot = 0;
  while (slot < kTable && table[slot].request != MPI_Request{}) ++slot;
  if (slot == kTable) {
    declined.add(profiles::Uncounted::requests);
    if (!call.persistent) record_completion(call);  // counted, exit unknown
    return;
  }
  table[slot] = call;
  if (slot >= high) high = slot + 1;
  pending_requests.fetch_add(1, std::memory_order_relaxed);
}

void lose_pending() {
  if (pending_requests.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(table_mutex);
  for (PendingCall& call : table) {
    if (call.request == MPI_Request{}) continue;
    lose_operation(call);
    drop(call);
  }
}

void forget_pending(const CommState* state) {
  if (pending_requests.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(table_mutex);
  for (int i = 0; i < high; ++i)
    if (table[i].state == state) table[i].state = nullptr;
}

}  // namespace latecomer::shim

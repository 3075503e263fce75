// SPDX-License-Identifier: BSD-3-Clause
// The rows of the threads that call MPI.
#include "shim/causes/thread_rows.hpp"

#include <algorithm>

#include "shim/causes/usage.hpp"
#include "shim/guard.hpp"

namespace latecomer::shim {

constinit ThreadRows thread_rows;

void ThreadRow::count_calls(std::uint64_t calls) {
  add_to(sums_.calls, calls);
  if (shared_) add_to(sites.others().calls, calls);
}

void ThreadRow::add(profiles::ThreadPart part, std::uint32_t weight, Nanoseconds time) {
  add_to(sums_.time[static_cast<std::size_t>(part)], weight * time);
  if (part == profiles::ThreadPart::collectives) return add_to(sums_.calls, 1);
  if (!shared_) return;
  add_to(sites.others().timed, 1);
  add_to(sites.others().time, weight * time);
  if (weight > 1) add_to(sites.others().variance, profiles::TimedSums::variance_of(weight, time));
}

ThreadRow* ThreadRows::begin_rows() {
  begun_ = true;
  has_key_ = pthread_key_create(&key_, give_back) == 0;
  rest_.shared_ = true;
  rows_[0].taken_.store(true, std::memory_order_relaxed);
  return rows_.data();
}

ThreadRow* ThreadRows::take_row() noexcept {
  if (!begun_) return nullptr;
  const KeepErrno keep;
  several_.store(true, std::memory_order_relaxed);
  ThreadRow* row = nullptr;
  for (ThreadRow& one : rows_) {
    bool taken = false;
    if (!has_key_ || !one.taken_.compare_exchange_strong(taken, true, std::memory_order_acquire)) continue;
    row = &one;
    break;
  }
  if (!row) {
    row = &rest_;
    without_row_.fetch_add(1, std::memory_order_relaxed);
  }
  row->threads_.fetch_add(1, std::memory_order_relaxed);
  // Without memory for this, nobody else gets the row.
  if (has_key_) pthread_setspecific(key_, row);
  return row;
}

void ThreadRows::give_back(void* row) {
  auto& ended = *static_cast<ThreadRow*>(row);
  end_polls();
  mpi_time.row = nullptr;  // a later destructor of the thread may call MPI
  if (ended.shared_) {
    thread_rows.without_row_.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  ended.since.store(0, std::memory_order_relaxed);
  ended.taken_.store(false, std::memory_order_release);
}

void ThreadRows::note_all_inside(Nanoseconds at) {
  if (without_row_.load(std::memory_order_relaxed) > 0) return;
  Nanoseconds begin = 0;
  for (const ThreadRow& row : rows_) {
    if (!row.taken_.load(std::memory_order_relaxed)) continue;
    const Nanoseconds since = row.since.load(std::memory_order_relaxed);
    if (since == 0) return;
    begin = std::max(begin, since);
  }
  // Several threads may leave at once. Each adds what the others have not.
  Nanoseconds until = until_.load(std::memory_order_relaxed);
  while (until < at && !until_.compare_exchange_weak(until, at, std::memory_order_relaxed)) {
  }
  all_inside_.fetch_add(std::max<Nanoseconds>(0, at - std::max(begin, until)), std::memory_order_relaxed);
}

void ThreadRows::list(std::vector<profiles::ThreadSums>& sums, std::vector<profiles::TimedSite>& sites) const {
  const std::size_t first = sites.size();
  profiles::TimedSite others;
  others.key.other_threads = true;
  sums.clear();
  const auto list_row = [&](const ThreadRow& row) {
    if (row.threads_.load(std::memory_order_relaxed) == 0) return;
    row.sites.add_to(sites, first, others);
    profiles::ThreadSums& its = sums.emplace_back(core::copy_shared(row.sums_));
    its.threads = row.threads_.load(std::memory_order_relaxed);
    its.shared = row.shared_ ? 1 : 0;
  };
  for (const ThreadRow& row : rows_) list_row(row);
  list_row(rest_);
  fold_shortest(sites, first, others);
}

}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// The rows of the threads that call MPI.
#include "shim/causes/thread_rows.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "shim/causes/usage.hpp"
#include "shim/guard.hpp"

namespace latecomer::shim {

constinit ThreadRows thread_rows;

ThreadSite* ThreadRow::count_call(const CallPlace& place) noexcept {
  ThreadSite& site = shared_ ? others_ : find_site(place);
  add_to<std::uint64_t>(site.calls, 1);
  add_to<std::uint64_t>(calls_, 1);
  return &site;
}

ThreadSite& ThreadRow::find_site(const CallPlace& place) noexcept {
  if (ThreadSite* recent = recent_.find(place)) return *recent;
  const SiteSlot* slot = find_slot(place);
  const profiles::TimedKey key{slot ? slot->site.load(std::memory_order_relaxed) : 0, place.call, true};
  if (key.site == 0) return others_;
  for (std::size_t i = core::mix64(key.site + key.call) % kPlaces;; i = (i + 1) % kPlaces) {
    ThreadSite& there = sites_[i];
    if (!there.used.load(std::memory_order_relaxed)) {
      if (used_ >= kPlaces * 3 / 4) return others_;
      ++used_;
      there.key = key;
      there.used.store(true, std::memory_order_release);
    }
    if (there.key != key) continue;
    recent_.note_site(place, *slot, there);
    return there;
  }
}

void ThreadRow::add(profiles::ThreadPart part, std::uint32_t weight, Nanoseconds time, ThreadSite* site) {
  add_to<Nanoseconds>(time_[static_cast<std::size_t>(part)], weight * time);
  if (!site) {
    add_to<std::uint64_t>(calls_, 1);
    return;
  }
  add_to<std::uint64_t>(site->timed, 1);
  add_to<Nanoseconds>(site->time, weight * time);
  if (weight > 1) add_to(site->variance, profiles::TimedSums::variance_of(weight, time));
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
  constexpr auto plain = std::memory_order_relaxed;
  sums.clear();
  profiles::TimedSite others{{0, 0, true}, {}};
  const auto add_site = [](const ThreadSite& from, profiles::TimedSums& to) {
    to.calls += from.calls.load(plain);
    to.timed += from.timed.load(plain);
    to.time += from.time.load(plain);
    to.variance += from.variance.load(plain);
  };
  const auto first = static_cast<std::ptrdiff_t>(sites.size());
  const auto list_row = [&](const ThreadRow& row) {
    if (row.threads_.load(plain) == 0) return;
    profiles::ThreadSums& its = sums.emplace_back();
    its.threads = row.threads_.load(plain);
    its.calls = row.calls_.load(plain);
    for (std::size_t i = 0; i < its.time.size(); ++i) its.time[i] = row.time_[i].load(plain);
    its.shared = row.shared_ ? 1 : 0;
    for (const ThreadSite& site : row.sites_) {
      if (!site.used.load(std::memory_order_acquire)) continue;
      auto there = std::ranges::find(sites.begin() + first, sites.end(), site.key, &profiles::TimedSite::key);
      if (there == sites.end()) there = sites.insert(there, {site.key, {}});
      add_site(site, there->sums);
    }
    add_site(row.others_, others.sums);
  };
  for (const ThreadRow& row : rows_) list_row(row);
  list_row(rest_);
  fold_shortest(sites, first, others);
}

}  // namespace latecomer::shim

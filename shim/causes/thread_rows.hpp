// SPDX-License-Identifier: BSD-3-Clause
// What the threads that call MPI do there. A thread has a row while it lives, and a later thread continues the row. The
// thread alone writes it, without a lock, and any thread may read it. Threads beyond the last row share one.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "profiles/record/thread_sums.hpp"
#include "shim/causes/timed_sites.hpp"

namespace latecomer::shim {

/// The calls of a site, on threads that did not start MPI.
struct ThreadSite {
  std::atomic<bool> used{false};  ///< the key is there, and stays
  profiles::TimedKey key;
  std::atomic<std::uint64_t> calls{0}, timed{0};
  std::atomic<Nanoseconds> time{0};
  std::atomic<double> variance{0};
};

class alignas(64) ThreadRow {
 public:
  /// The begin of the timed call in which the thread is; 0: it is in none.
  std::atomic<Nanoseconds> since{0};

  /// A call that is no collective begins. Returns its site, which stays in place. Keeps errno.
  ThreadSite* count_call(const CallPlace& place) noexcept;
  /// A timed call has ended. `site`: nullptr in a collective.
  void add(profiles::ThreadPart part, std::uint32_t weight, Nanoseconds time, ThreadSite* site);
  /// As TimedSites::forget_unloaded().
  void forget_unloaded() { recent_.forget_unloaded(); }

 private:
  friend class ThreadRows;
  ThreadSite& find_site(const CallPlace& place) noexcept;
  template <typename T>
  void add_to(std::atomic<T>& figure, T more) const {
    if (shared_) figure.fetch_add(more, std::memory_order_relaxed);
    else figure.store(figure.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }

  std::atomic<bool> taken_{false};
  bool shared_ = false;                    ///< several threads write this row, which has no sites
  std::atomic<std::uint32_t> threads_{0};  ///< that have had this row
  std::atomic<std::uint64_t> calls_{0};
  std::array<std::atomic<Nanoseconds>, std::size(profiles::kThreadParts)> time_{};
  /// Derived: 32 places of 64 bytes, so that all rows take 16 KiB.
  static constexpr std::size_t kPlaces = 32;
  std::array<ThreadSite, kPlaces> sites_{};
  std::size_t used_ = 0;
  ThreadSite others_;  ///< calls from sites beyond three quarters of the places
  RecentSites<ThreadSite, 3> recent_;
};

class ThreadRows {
 public:
  /// On the thread that starts MPI. Its row has no figures but `since`, because that thread has figures of its own.
  ThreadRow* begin_rows();
  /// Nothing is timed. Call it before other threads call MPI.
  void end_rows() { begun_ = false; }
  /// Gives a row to this thread, which is another one; nullptr if nothing is timed. Keeps errno.
  ThreadRow* take_row() noexcept;
  /// Whether a second thread has called MPI.
  bool several() const { return several_.load(std::memory_order_relaxed); }
  /// Notes for how long all threads were inside MPI. Call it at the end of a timed call, before the row says so.
  void note_all_inside(Nanoseconds at);
  /// The time for which all threads that call MPI were inside timed calls, a lower bound.
  Nanoseconds all_inside() const { return all_inside_.load(std::memory_order_relaxed); }
  /// Replaces `sums`, and appends the sites. Allocates only where they have to grow.
  void list(std::vector<profiles::ThreadSums>& sums, std::vector<profiles::TimedSite>& sites) const;

 private:
  static void give_back(void* row);

  /// Chosen: few threads of a process call MPI at the same time.
  static constexpr std::size_t kRows = 8;
  std::array<ThreadRow, kRows> rows_;  ///< the first one is that of the thread that started MPI
  ThreadRow rest_;                     ///< of threads that found no row
  std::atomic<std::uint32_t> without_row_{0};
  std::atomic<bool> several_{false};
  std::atomic<Nanoseconds> all_inside_{0}, until_{0};
  pthread_key_t key_{};
  bool begun_ = false, has_key_ = false;
};
extern constinit ThreadRows thread_rows;

}  // namespace latecomer::shim

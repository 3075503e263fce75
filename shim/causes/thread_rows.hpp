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
#include "shim/causes/poll_stretch.hpp"
#include "shim/causes/timed_sites.hpp"

namespace latecomer::shim {

/// The open stretch of polls of a thread, if mpi_time.polls (shim/causes/polling.hpp).
class Polling {
 public:
  /// Call begin_poll() only if a stretch is open.
  void begin_poll();
  void fail_poll(const CallPlace& place);
  /// Returns the time of the stretch if it was a wait.
  Wait succeed();
  Wait end_stretch();
  /// Of the last stretch that was a wait: its time, and the site of its first poll.
  Nanoseconds waited() const { return waited_; }
  const profiles::TimedKey& site_key() const { return site_->key; }

 private:
  void begin_stretch(const CallPlace& place);
  void end_piece();
  void end_code(bool waited);
  void add(const PollWait& wait, Nanoseconds at);

  PollStretch stretch_;
  std::uint32_t weight_ = 0;             ///< 0: the stretch rests
  Nanoseconds waited_ = 0;               ///< in pieces that have ended
  profiles::TimedSite* site_ = nullptr;  ///< of the first poll
  bool shown_ = false;                   ///< `latecomer who` sees a wait
};

class alignas(64) ThreadRow {
 public:
  /// The begin of the timed call in which the thread is; 0: it is in none.
  std::atomic<Nanoseconds> since{0};

  /// Of the thread that has the row, and of no other one if the row is not shared.
  Polling polling;
  ThreadSites sites;
  /// Whether several threads write this row, which has neither sites nor stretches of polls.
  bool shared() const { return shared_; }
  /// Calls that are no collectives. In a shared row, they have no site.
  void count_calls(std::uint64_t calls);
  /// A timed call has ended, or a part of one.
  void add(profiles::ThreadPart part, std::uint32_t weight, Nanoseconds time);

 private:
  friend class ThreadRows;
  template <typename T>
  void add_to(T& figure, std::type_identity_t<T> more) const {
    if (shared_) std::atomic_ref(figure).fetch_add(more, std::memory_order_relaxed);
    else core::add_shared(figure, more);
  }

  std::atomic<bool> taken_{false};
  bool shared_ = false;
  std::atomic<std::uint32_t> threads_{0};  ///< that have had this row
  profiles::ThreadSums sums_;              ///< without `threads` and `shared`
};

class ThreadRows {
 public:
  /// On the thread that starts MPI. Its row has `since` and `polling` only, because that thread has figures of its own.
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
  /// The first one is that of the thread that started MPI. Derived: 16 KiB, of which the system gives a page when a
  /// thread uses it.
  std::array<ThreadRow, kRows> rows_;
  ThreadRow rest_;  ///< of threads that found no row
  std::atomic<std::uint32_t> without_row_{0};
  std::atomic<bool> several_{false};
  std::atomic<Nanoseconds> all_inside_{0}, until_{0};
  pthread_key_t key_{};
  bool begun_ = false, has_key_ = false;
};
extern constinit ThreadRows thread_rows;

}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// What the main thread did between two collectives: time in other MPI calls, on a processor, without one, asleep. Reads
// the kernel's counters for a sample of the intervals, within a budget of the run time.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <utility>

#include "core/base/text.hpp"
#include "profiles/record/record.hpp"
#include "shim/clock.hpp"
#include "shim/live/live.hpp"

namespace latecomer::shim {

/// Time of the calling thread inside blocking collectives, inside other MPI calls that wait for ranks, and inside MPI's
/// calls for files.
struct MpiTime {
  Nanoseconds collectives = 0, messages = 0, io = 0;
  Nanoseconds io_seen = 0, io_cpu = 0;  ///< of `io` in sampled intervals: time, and processor time
  /// The number of the interval of this thread that is being sampled: waits go to ranks, too. 0: none is.
  std::uint32_t sampled = 0;
  Nanoseconds all() const { return collectives + messages + io; }
};
extern constinit thread_local MpiTime mpi_time;

/// Whether calls that wait are timed: latecomer observes, with the policy key `causes`.
extern constinit std::atomic<bool> timing;
/// A shorter call waits for no rank: it transfers a message. Chosen: twice the time of a message in shared memory.
constexpr Nanoseconds kTransfer = 1000;

/// Adds the time of its scope to one of them. `counts`: false does nothing.
class TimedCall {
 public:
  TimedCall(Nanoseconds& sum, bool counts) : sum_(counts ? &sum : nullptr), begin_(counts ? now() : 0) {
    if (counts) live->message.store(begin_, std::memory_order_relaxed);
  }
  TimedCall(const TimedCall&) = delete;
  TimedCall& operator=(const TimedCall&) = delete;
  ~TimedCall() { end(); }
  /// Ends the scope early. Returns its time if that belongs to ranks: it waited, in an interval that is being sampled.
  Nanoseconds end() {
    if (!sum_) return 0;
    const Nanoseconds spent = now() - begin_;
    *sum_ += spent, sum_ = nullptr;
    live->message.store(0, std::memory_order_relaxed);
    return mpi_time.sampled != 0 && spent > kTransfer ? spent : 0;
  }

 private:
  Nanoseconds* sum_;
  Nanoseconds begin_;
};

/// Splits a call for files in a sampled interval into time on a processor and sleep. The latter is no sleep of the
/// program.
class FileCall {
 public:
  explicit FileCall(bool counts) : counts_(counts && mpi_time.sampled != 0) {
    if (counts_) mpi_time.io_seen -= now(), mpi_time.io_cpu -= cpu_now();
  }
  FileCall(const FileCall&) = delete;
  FileCall& operator=(const FileCall&) = delete;
  ~FileCall() {
    if (counts_) mpi_time.io_seen += now(), mpi_time.io_cpu += cpu_now();
  }

 private:
  static Nanoseconds cpu_now();
  bool counts_;
};

/// Samples intervals between blocking collectives. One thread uses it: the one that started MPI. Others are not
/// sampled.
class Sampler {
 public:
  /// On the thread that starts MPI. Without the kernel's counters nothing is sampled.
  void start();
  /// The policy wants no samples. Without a reading at start(), total() is zero.
  void never() { left_ = 0, ::close(std::exchange(schedstat_, -1)); }
  /// At the end of the job: total() stands still.
  void stop() { final_ = total(), stopped_ = true; }
  /// What the thread has done since start(); zero on another thread.
  profiles::Usage total();
  /// At the arrival at a blocking collective: ends an interval that is being sampled.
  void arrive() {
    if (open_) [[unlikely]]
      close();
  }
  /// At any other collective: the interval no longer lies between two blocking ones.
  void discard() { open_ = false, mpi_time.sampled = 0; }
  /// A call of the interval that is being sampled waited for that rank of MPI_COMM_WORLD.
  void wait_for(Rank rank, Nanoseconds waited) { peers_.add(rank, waited); }
  /// At the exit of a blocking collective. `before`: takes the interval that ended at its arrival, if it was sampled.
  void leave(profiles::Intervals& before) {
    if (closed_) [[unlikely]]
      before.add(interval_, peers_), closed_ = false;
    if (--left_ == 0) [[unlikely]]
      open();
  }

 private:
  struct Reading {
    Nanoseconds wall = 0, cpu = 0, kernel = 0, runnable = 0, napped = 0, process = 0;
    MpiTime mpi;
    std::uint64_t faults = 0, preempted = 0;
  };
  bool read(Reading& out) const;
  /// `kernel_left`: time of the kernel that did not fit into earlier intervals, because ticks count it. It goes into
  /// this one as far as it fits.
  profiles::Usage between(const Reading& a, const Reading& b, Nanoseconds& kernel_left) const;
  void open();
  void close();

  int schedstat_ = -1;
  int thread_ = 0;
  bool open_ = false, closed_ = false, stopped_ = false;
  std::uint32_t left_ = 0;  ///< exits until the next sample; it wraps around, and so never comes, if nothing is sampled
  core::SplitMix64 random_{1};
  Nanoseconds opened_at_ = 0;
  Nanoseconds cost_ = 0;  ///< of one reading
  Nanoseconds kernel_left_ = 0;
  Nanoseconds fault_ = 0;        ///< the most that a page fault costs
  std::uint32_t exits_ = 1;      ///< between the last two samples
  std::uint32_t intervals_ = 0;  ///< that were opened
  Reading begin_, start_;
  profiles::Usage interval_, final_;
  profiles::Peers peers_;
};
extern constinit Sampler sampler;

}  // namespace latecomer::shim

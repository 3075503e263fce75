// SPDX-License-Identifier: BSD-3-Clause
// What the threads of this process share: its contribution to the profile, and the list of the program's communicators.
// Only a thread that holds a JobLock can reach them.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "profiles/record/record.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/process.hpp"

namespace latecomer::shim {

struct Shared {
  CommState* states = nullptr;  ///< of all communicators that have one
  /// A communicator that a thread frees: MPI runs the program's delete functions, which may call collectives.
  struct Freed {
    MPI_Comm comm;
    pthread_t thread;            ///< another thread may get the same handle for a new communicator
    CommState* state = nullptr;  ///< set once its attribute is deleted
  };
  std::vector<Freed> freed;
  /// Number of communicators per group hash, for at most as many groups as resolve_members() says.
  std::map<std::uint64_t, std::uint32_t> creations;

  profiles::LocalQueue queue;   ///< calls that are not yet in mine.local
  profiles::Contribution mine;  ///< contribution to the profile: local sites, patterns led here, retained logs
  std::vector<std::string> past_decisions;  ///< of freed communicators
  std::size_t retained_records = 0, retained_missed = 0;
  Nanoseconds epochs_until = 0;  ///< the last end of an epoch of any communicator
  /// Of communicators led here: calls without the records of all ranks, and calls that differ between ranks.
  std::uint64_t missing_calls = 0, different_calls = 0;
  std::vector<profiles::LiveLog> live;  ///< work space of write_snapshot()

  /// Keeps one element of the profile's `plans`.
  void keep_plan(std::string text);
  /// The entry of a communicator that this thread frees, with its state if it has several; or nullptr.
  Freed* freed_here(MPI_Comm comm);
};

/// Holds a mutex while it exists, if several threads may be inside MPI. Never held while waiting for another rank.
class JobLock {
 public:
  JobLock() : lock_(held_->mutex, std::defer_lock) {
    if (job_process().threads) lock_.lock();
  }
  /// Does not wait: false if another thread has the mutex.
  explicit JobLock(std::try_to_lock_t) : lock_(held_->mutex, std::defer_lock) {
    if (job_process().threads) got_ = lock_.try_lock();
  }

  explicit operator bool() const { return got_; }
  Shared* operator->() const { return &held_->shared; }

 private:
  friend bool make_job();
  struct Held {
    std::mutex mutex;
    Shared shared;
  };
  static Held* held_ __attribute__((visibility("hidden")));

  std::unique_lock<std::mutex> lock_;
  bool got_ = true;
};

}  // namespace latecomer::shim

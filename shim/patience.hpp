// SPDX-License-Identifier: BSD-3-Clause
// A wait that does not take the core from the process that it waits for.
#pragma once

#include <sched.h>
#include <time.h>

#include <cstdint>

namespace latecomer::shim {

/// A count of the network library's actions for this thread, if its progress function is intercepted. It changes while
/// a message is in transfer.
inline constinit thread_local unsigned network_progress = 0;

/// Time that this thread has slept in waits of MPI.
inline constinit thread_local std::int64_t napped_ns = 0;

/// Waits a moment: spins, then yields, then sleeps. Reset it before each wait.
class Patience {
 public:
  explicit Patience(bool courteous) : courteous_(courteous) {}
  void wait() {
    ++turns_;
    if (!courteous_ || turns_ < kSpins) return;
    if (turns_ < kYields) {
      sched_yield();
      return;
    }
    const timespec nap{0, kNap};
    timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    nanosleep(&nap, nullptr);
    clock_gettime(CLOCK_MONOTONIC, &end);
    napped_ns += (end.tv_sec - begin.tv_sec) * std::int64_t{1'000'000'000} + end.tv_nsec - begin.tv_nsec;
  }
  void reset() { turns_ = 0; }

 private:
  // Derived: 20 tests that find nothing take 0.3 us, as long as a message of 8 bytes (measured, 2 ranks in shared
  // memory on quiet cores). So a message that is under way on this host arrives without a yield.
  static constexpr unsigned kSpins = 20;
  // Derived: a test and a yield take 0.2 us, so naps begin after 0.8 ms (measured in the same way). A nap then takes
  // 0.13 ms, with the timer's slack of 50 us (measured, virtual machine): it adds at most a sixth to the wait.
  static constexpr unsigned kYields = 4000;
  static constexpr long kNap = 50'000;
  bool courteous_;
  unsigned turns_ = 0;
};

}  // namespace latecomer::shim

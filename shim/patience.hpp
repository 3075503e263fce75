// SPDX-License-Identifier: BSD-3-Clause
// How a process waits without taking the core from whom it waits for.
#pragma once

#include <sched.h>
#include <time.h>

namespace latecomer::shim {

/// A count of the network library's actions for this thread, if its progress function is intercepted. It changes while
/// a message is in transfer.
inline constinit thread_local unsigned network_progress = 0;

/// Waits a little: spins, then yields, then sleeps. Reset before each wait.
class Patience {
 public:
  explicit Patience(bool courteous) : courteous_(courteous) {}
  void wait() {
    // Spinning for about as long as a small message takes, then giving the core away. After a millisecond of
    // waiting (a late process) sleeping costs little: 50 us against what is being waited for.
    ++turns_;
    if (!courteous_) return;
    if (turns_ < 20) return;
    if (turns_ < 4000) {
      sched_yield();
      return;
    }
    const timespec nap{0, 50'000};
    nanosleep(&nap, nullptr);
  }
  void reset() { turns_ = 0; }

 private:
  bool courteous_;
  unsigned turns_ = 0;
};

}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// The limit of file sizes (ulimit -f). A write beyond it fails with EFBIG, and the kernel sends the thread SIGXFSZ,
// which ends the process by default.
#pragma once

#include <cerrno>
#include <csignal>
#include <ctime>

namespace latecomer::profiles {

/// While an object exists, this thread gets no SIGXFSZ for its own writes.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~NoFileSizeSignal() {
    if (sigismember(&before_, SIGXFSZ) == 1) return;
    const int error = errno;
    const timespec at_once{};
    sigtimedwait(&signal_, nullptr, &at_once);
    pthread_sigmask(SIG_UNBLOCK, &signal_, nullptr);
    errno = error;
  }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;

 private:
  sigset_t signal_{}, before_{};
};

}  // namespace latecomer::profiles

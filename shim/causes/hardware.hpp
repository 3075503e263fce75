// SPDX-License-Identifier: BSD-3-Clause
// Instructions and cycles of the thread that started MPI, where its machine counts them: a virtual machine often does
// not. It counts in user mode only.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "shim/causes/poll_stretch.hpp"

namespace latecomer::shim {

class HardwareCounts {
 public:
  /// On the thread that started MPI. Returns whether the machine counts.
  bool open();
  /// Sets the counts, or zeros if they are not known. Three system calls: the file must still be the counters', because
  /// a program may close all files and open others. Files that are no anonymous inodes are not asked: an ioctl may mean
  /// something to them.
  void read(ThreadTimes& out) const;

 private:
  int counters_ = -1;
  std::uint64_t id_ = 0;
  dev_t device_ = 0;
  ino_t file_ = 0;
};

}  // namespace latecomer::shim

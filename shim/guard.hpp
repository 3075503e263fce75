// SPDX-License-Identifier: BSD-3-Clause
// Guards around our own code inside a program's call.
#pragma once

#include <cerrno>

namespace latecomer::shim {

/// Set while latecomer is on the stack: MPI calls made from inside are not observed.
extern constinit thread_local bool inside;

/// Keeps the program's errno across the rare steps of an intercepted call.
class KeepErrno {
 public:
  KeepErrno() : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }

 private:
  int saved_;
};

}  // namespace latecomer::shim

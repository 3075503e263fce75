// SPDX-License-Identifier: BSD-3-Clause
// Guards around our own code inside a program's call.
#pragma once

#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>

#include "shim/log.hpp"

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

/// Whether work was done, and if not, why. Has a buffer of its own, because the reason may be a lack of memory.
struct Outcome {
  char why[120] = "";
  explicit operator bool() const { return why[0] == '\0'; }
};

/// Does work of ours that may throw: no exception may reach MPI or the program.
template <typename Work>
Outcome attempt(Work work) noexcept {
  Outcome out;
  try {
    work();
  } catch (const std::bad_alloc&) {
    std::snprintf(out.why, sizeof out.why, "out of memory");
  } catch (const std::exception& e) {
    std::snprintf(out.why, sizeof out.why, "%s", *e.what() ? e.what() : "unknown");
  } catch (...) {
    std::snprintf(out.why, sizeof out.why, "unknown");
  }
  return out;
}

/// Does local work for arrival patterns. Without memory they are lost, and this rank goes on, because others wait.
template <typename Work>
bool try_patterns(Work work) noexcept {
  const Outcome done = attempt(work);
  if (!done) warn("some arrival patterns are lost: %s", done.why);
  return static_cast<bool>(done);
}

}  // namespace latecomer::shim

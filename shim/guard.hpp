// SPDX-License-Identifier: BSD-3-Clause
// Guards around latecomer's own code inside a program's call.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>

#include "shim/log.hpp"

namespace latecomer::shim {

/// Whose code calls MPI.
enum class Layer : std::uintptr_t {
  program,  ///< the program or a binding of MPI, in callbacks beneath MPI, too
  ours,     ///< latecomer's steps around a call
  tool,     ///< a tool behind latecomer, in a call that latecomer has seen already
};

/// Says whose code calls MPI on this thread, until the end of its scope. Only calls of the program are observed. Each
/// step of latecomer that may run code of the program (MPI's own call, an operator, an error handler) is in a scope
/// with Layer::program. So an error handler may leave by longjmp, which runs no destructor, or an operator by an
/// exception: what stays behind is right. Where this should fail, the guard's address tells: it holds for deeper frames
/// of its stack only. A call from above, or from another stack, is the program's.
class Guard {
 public:
  explicit Guard(Layer layer) : before_(word_) {
    word_ = layer == Layer::program ? 0 : reinterpret_cast<std::uintptr_t>(this) | static_cast<std::uintptr_t>(layer);
  }
  ~Guard() { word_ = before_; }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// Whether the program makes the current call of MPI.
  static bool program_calls() { return word_ == 0 || check() == Layer::program; }

 private:
  static constexpr std::uintptr_t kLayer = 3;
  static Layer check();
  static constinit thread_local std::uintptr_t word_;  ///< 0, or the address of the guard in force, and its layer
  std::uintptr_t before_;
};

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
  bool no_memory = false;
  explicit operator bool() const { return why[0] == '\0'; }
};

/// Runs work of latecomer that may throw: no exception may reach MPI or the program.
template <typename Work>
Outcome attempt(Work work) noexcept {
  Outcome out;
  try {
    work();
  } catch (const std::bad_alloc&) {
    std::snprintf(out.why, sizeof out.why, "out of memory");
    out.no_memory = true;
  } catch (const std::exception& e) {
    std::snprintf(out.why, sizeof out.why, "%s", *e.what() ? e.what() : "unknown");
  } catch (...) {
    std::snprintf(out.why, sizeof out.why, "unknown");
  }
  return out;
}

/// Whether arrival patterns were lost because this process was out of memory. The code that loses some notes it.
inline std::atomic<bool> patterns_lacked_memory = false;
inline void note_lack_of_memory() { patterns_lacked_memory.store(true, std::memory_order_relaxed); }

/// Does local work for arrival patterns. Without memory they are lost, and this rank goes on, because others wait.
template <typename Work>
bool try_patterns(Work work) noexcept {
  const Outcome done = attempt(work);
  if (!done) warn("some arrival patterns are lost: %s", done.why);
  if (done.no_memory) note_lack_of_memory();
  return static_cast<bool>(done);
}

}  // namespace latecomer::shim

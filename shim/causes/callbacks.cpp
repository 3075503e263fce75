// SPDX-License-Identifier: BSD-3-Clause
// The functions that MPI calls in place of the program's. MPI passes nothing that names an operator, so there is one
// for each function of the program.
#include "shim/causes/callbacks.hpp"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "shim/causes/usage.hpp"
#include "shim/mpi/names.hpp"

namespace latecomer::shim {

namespace {

/// Any callback: they have up to seven arguments in C and Fortran, each a word at most. A function with fewer ignores
/// the others, and the caller ignores a result that there is not.
using Callback = std::intptr_t (*)(void*, void*, void*, void*, void*, void*, void*);

/// Chosen: a program has few of them. They are never given back, since MPI may keep a function for ever.
constexpr std::size_t kMostCallbacks = 64;
/// A shorter callback is not timed, and one in kLook calls looks at it again. Derived: two readings of the counter take
/// a tenth of that (23 ns, measured).
constexpr Nanoseconds kShort = 250;
constexpr std::uint8_t kLook = 64;

struct Given {
  std::atomic<Callback> function{nullptr};
  std::atomic<std::uint8_t> rests{0};  ///< calls before the next one that is timed
};
constinit std::array<Given, kMostCallbacks> given;
constinit std::mutex given_mutex;

/// Times its scope, in which the program runs beneath a call of MPI.
class InProgram {
 public:
  InProgram() : row_(mpi_time.row), since_(row_ ? row_->since.exchange(0, std::memory_order_relaxed) : 0) {
    begin_ = now() - mpi_time.marked();
  }
  Nanoseconds end() {
    const Nanoseconds time = std::max<Nanoseconds>(0, now() - mpi_time.marked() - begin_);
    mpi_time.callbacks += time;
    if (row_ && row_ == mpi_time.row) row_->since.store(since_, std::memory_order_relaxed);
    return time;
  }

 private:
  ThreadRow* row_;
  Nanoseconds since_, begin_;
};

template <std::size_t n>
std::intptr_t call_program(void* a, void* b, void* c, void* d, void* e, void* f, void* g) {
  Given& its = given[n];
  const Callback function = its.function.load(std::memory_order_relaxed);
  if (const std::uint8_t rests = its.rests.load(std::memory_order_relaxed); rests > 0) {
    its.rests.store(static_cast<std::uint8_t>(rests - 1), std::memory_order_relaxed);
    return function(a, b, c, d, e, f, g);
  }
  InProgram timed;
  const std::intptr_t result = function(a, b, c, d, e, f, g);
  if (timed.end() < kShort) its.rests.store(kLook - 1, std::memory_order_relaxed);
  return result;
}

template <std::size_t... n>
constexpr std::array<Callback, kMostCallbacks> callers_of(std::index_sequence<n...>) {
  return {&call_program<n>...};
}
constexpr std::array<Callback, kMostCallbacks> callers = callers_of(std::make_index_sequence<kMostCallbacks>());

/// Whether it is a function of the program. MPI compares some of its own with their addresses, and some are no
/// addresses.
bool is_of_program(const void* function) {
  constexpr std::uintptr_t kLeastAddress = 4096;
  Dl_info info;
  if (reinterpret_cast<std::uintptr_t>(function) < kLeastAddress) return false;
  return !dladdr(function, &info) || !info.dli_fname || !is_mpi_library(info.dli_fname);
}

}  // namespace

void* callback_of(void* function) noexcept {
  const KeepErrno keep;
  if (!is_of_program(function)) return function;
  const auto callback = reinterpret_cast<Callback>(function);
  const std::lock_guard lock(given_mutex);
  for (std::size_t i = 0; i < kMostCallbacks; ++i) {
    const Callback there = given[i].function.load(std::memory_order_relaxed);
    if (!there) given[i].function.store(callback, std::memory_order_relaxed);
    if (!there || there == callback) return reinterpret_cast<void*>(callers[i]);
  }
  return function;
}

}  // namespace latecomer::shim

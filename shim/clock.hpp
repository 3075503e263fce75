// SPDX-License-Identifier: BSD-3-Clause
// The clock of this process, read without a system call. shim/state/clocks.hpp compares the clocks of processes.
#pragma once

#include <cstdint>

#include "core/collective/collective.hpp"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace latecomer::shim {

using core::Nanoseconds;
using core::Rank;

/// CLOCK_MONOTONIC of this domain in ns. Reads the processor's counter if the kernel derives its clock from it, which
/// takes about 8 ns instead of 20. Compares the counter with the clock at least every 100 ms.
Nanoseconds now();

/// Processor time of this thread. Takes a system call.
Nanoseconds thread_time();

namespace clock_detail {
struct Reading {
  std::uint64_t counter = 0;
  Nanoseconds time = 0;
};
struct Anchor {
  std::uint64_t counter = 0, scale = 0, valid = 0;  // scale: nanoseconds per count, 32.32
  Nanoseconds time = 0;
  Reading since;  // begin of the rate's span
  bool begun = false;
};
extern constinit thread_local Anchor anchor;
Nanoseconds anchored_now();
}  // namespace clock_detail

inline Nanoseconds now() {
#if defined(__x86_64__)
  const clock_detail::Anchor& a = clock_detail::anchor;
  const std::uint64_t past = __rdtsc() - a.counter;
  if (past < a.valid) [[likely]]
    return a.time + static_cast<Nanoseconds>((past * a.scale) >> 32);
#endif
  return clock_detail::anchored_now();
}

}  // namespace latecomer::shim

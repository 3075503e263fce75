// SPDX-License-Identifier: BSD-3-Clause
// This process's clock, which it reads without a system call. This file must not know other processes:
// shim/state/clocks.hpp compares their clocks.
#pragma once

#include <cstdint>

#include "core/base/types.hpp"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace latecomer::shim {

using core::Nanoseconds;
using core::Rank;

/// This domain's CLOCK_MONOTONIC in nanoseconds. Where the processor's counter is what the kernel's clock is
/// made of, it is read directly (about 8 ns instead of 20) and tied to the clock again at least every 100 ms.
Nanoseconds now();

namespace clock_detail {
struct Reading {
  std::uint64_t counter = 0;
  Nanoseconds time = 0;
};
struct Anchor {
  std::uint64_t counter = 0, scale = 0, valid = 0;  // scale: nanoseconds per count, 32.32
  Nanoseconds time = 0;
  Reading since;  // where the rate's span begins
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

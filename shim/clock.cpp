// SPDX-License-Identifier: BSD-3-Clause
// The clock of the process: the processor's counter, adjusted to the kernel's clock at intervals.
#include "shim/clock.hpp"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace latecomer::shim {
namespace {

Nanoseconds time_of(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<Nanoseconds>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

Nanoseconds kernel_now() { return time_of(CLOCK_MONOTONIC); }

#if defined(__x86_64__)
using clock_detail::Anchor;
using clock_detail::Reading;

/// Whether the processor's counter is invariant and the kernel derives its clock from it.
bool counter_is_the_clock() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & (1u << 8))) return false;
  char source[64] = {};
  if (std::FILE* file = std::fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r")) {
    if (!std::fgets(source, sizeof source, file)) source[0] = '\0';
    std::fclose(file);
  }
  return std::strncmp(source, "tsc", 3) == 0 || std::strncmp(source, "kvm-clock", 9) == 0 ||
         std::strncmp(source, "hyperv", 6) == 0;
}

/// The narrowest of three brackets: this excludes an interrupt between the two readings.
Reading read_both() {
  Reading best;
  std::uint64_t width = UINT64_MAX;
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t before = __rdtsc();
    const Nanoseconds time = kernel_now();
    const std::uint64_t after = __rdtsc();
    if (after - before < width) {
      width = after - before;
      best = {before + (after - before) / 2, time};
    }
  }
  return best;
}

// The longest time between two anchors. Derived: if the kernel changes its rate by 1 ppm, time errs by 0.1 us until the
// next anchor. An anchor costs three readings of the kernel's clock, 16 ns each (measured, one quiet core).
constexpr Nanoseconds kSteady = 100'000'000;
// The shortest span for a rate. Derived: an anchor errs by about 30 ns, one reading of the kernel's clock. A rate over
// a span adds no more than that if it serves for as long again. Until the first span ends, time comes from the kernel.
constexpr Nanoseconds kFirstSpan = 200'000;
// A greater error of the prediction means that the kernel steers its clock, so a new rate begins. Derived: far more
// than the 30 ns of two anchors. Over 100 ms it is a change of the rate by 20 ppm.
constexpr Nanoseconds kTolerated = 2'000;

std::atomic<int> usable{-1};

}  // namespace

constinit thread_local clock_detail::Anchor clock_detail::anchor;

[[gnu::noinline]] Nanoseconds clock_detail::anchored_now() {
  if (usable.load(std::memory_order_relaxed) == 0) return kernel_now();
  if (usable.load(std::memory_order_relaxed) < 0) usable.store(counter_is_the_clock(), std::memory_order_relaxed);
  const Reading here = read_both();
  Anchor& a = clock_detail::anchor;
  if (a.begun && a.scale != 0) {
    const auto predicted =
        a.time + static_cast<Nanoseconds>((static_cast<unsigned __int128>(here.counter - a.counter) * a.scale) >> 32);
    if (predicted - here.time > kTolerated || here.time - predicted > kTolerated) a.begun = false;
  }
  if (!a.begun) {
    a.begun = true;
    a.since = here;
    a.scale = 0;
  }
  const Nanoseconds span = here.time - a.since.time;
  a.counter = here.counter;
  a.time = here.time;
  if (span < kFirstSpan || here.counter <= a.since.counter) {
    a.valid = 0;
    return here.time;
  }
  a.scale = static_cast<std::uint64_t>((static_cast<unsigned __int128>(span) << 32) / (here.counter - a.since.counter));
  const Nanoseconds good_for = std::min(span, kSteady);
  a.valid = a.scale == 0 ? 0 : (static_cast<std::uint64_t>(good_for) << 32) / a.scale;
  if (span > 20 * kSteady) a.since = here;  // every 2 s: follow the kernel's rate
  return here.time;
}
#else
Nanoseconds clock_detail::anchored_now() { return kernel_now(); }
#endif

Nanoseconds thread_time() { return time_of(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace latecomer::shim

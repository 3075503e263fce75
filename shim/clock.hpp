// SPDX-License-Identifier: BSD-3-Clause
// Time. One clock per clock domain (a kernel and its time namespace), read without a system call, and the
// offsets between domains: intervals that certainly hold the truth, renewed while the job runs.
#pragma once

#include <atomic>
#include <vector>

#include "core/collective/collective.hpp"

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

/// What one process knows of the clocks of its job.
struct Clocks {
  std::atomic<Nanoseconds> offset{0};       ///< common time = now() + offset; rank 0's domain is common
  std::atomic<Nanoseconds> uncertainty{0};  ///< half the interval that holds the offset, at the last look
  std::atomic<int> looks{0};                ///< times the offset was measured
  int domains = 1;
  std::vector<Rank> members;   ///< if this rank looks for its domain: the other ranks of it
  std::vector<Rank> children;  ///< looking ranks of other domains that ask this one
  Rank parent = -1;            ///< whom this rank asks; -1: nobody
  Rank looker = -1;            ///< the rank that looks for this domain

  Nanoseconds common() const { return now() + offset.load(std::memory_order_relaxed); }
  /// Uncertainty now: what was measured, and what clocks may have drifted since.
  Nanoseconds uncertainty_now() const;

 private:
  friend void survey_clocks(Clocks&, Rank, const std::vector<Rank>&);
  friend void renew_offset(Clocks&);
  friend void hear_offset(Clocks&);
  void take(Nanoseconds low, Nanoseconds high, Nanoseconds parents);
  std::atomic<Nanoseconds> looked_at_{0};
  std::atomic<Nanoseconds> drift_ppb_{1000};  // before it has been seen: what disciplined clocks differ by
  Nanoseconds tried_at_ = 0;
  std::uint64_t serial_ = 0;
};

/// Collective over the private communicator, at start. first_of[r]: the first rank in r's clock domain.
/// Ping-pongs along a binomial tree of domains: no rank exchanges with more than log2(domains) others.
void survey_clocks(Clocks& clocks, Rank rank, const std::vector<Rank>& first_of);

/// Right after an operation that every rank has just left: renews the offset if a second has passed. Waits
/// for nobody longer than 100 us (2 ms with more ranks than cores), and what is not answered in that time is forgotten.
void renew_offset(Clocks& clocks);

/// Takes over a newer offset from the rank that looks for this domain, if it has sent one.
void hear_offset(Clocks& clocks);

}  // namespace latecomer::shim

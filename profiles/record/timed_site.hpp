// SPDX-License-Identifier: BSD-3-Clause
// The sites of MPI calls that are no collectives and may wait: what a process spent in them, and for whom it waited.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include "profiles/record/lengths.hpp"
#include "profiles/record/peers.hpp"

namespace latecomer::profiles {

using core::Nanoseconds;

/// A function of MPI that is no collective: its name, and its section in shim/front/functions.def.
struct MpiCall {
  std::string_view name, section;
};
/// All of them. Processes of one build have the same numbers.
inline constexpr MpiCall kMpiCalls[] = {
#include <mpi_calls.inc>  // generated
};

/// A call site and the function that it calls. Without a site: all sites that share one entry.
struct TimedKey {
  std::uint64_t site = 0;
  std::uint32_t call = 0;      ///< in kMpiCalls
  bool other_threads = false;  ///< calls of threads that did not start MPI
  auto operator<=>(const TimedKey&) const = default;
  static auto members(auto& k) { return std::tie(k.site, k.call, k.other_threads); }
};

/// What a process did there. A call that was timed also stands for calls that rested: `calls` is exact, the times are
/// estimates. One thread adds, and others may copy_shared() meanwhile.
struct TimedSums {
  std::uint64_t calls = 0, timed = 0;
  Nanoseconds time = 0;      ///< in the calls
  Nanoseconds together = 0;  ///< of `time`, waits for several ranks at once. `peers` has each such wait for each rank
  double variance = 0;       ///< of `time`
  Peers peers;
  void add(std::uint32_t weight, Nanoseconds spent) {
    core::add_shared(timed, 1);
    core::add_shared(time, weight * spent);
    if (weight > 1) [[unlikely]]
      core::add_shared(variance, variance_of(weight, spent));
  }
  static double variance_of(std::uint32_t weight, Nanoseconds spent) {
    const auto all = static_cast<double>(weight) * static_cast<double>(spent);
    return (1 - 1.0 / weight) * all * all;
  }
  void merge(const TimedSums& o) {
    calls += o.calls;
    timed += o.timed;
    time = plus(time, o.time);
    together = plus(together, o.together);
    variance += o.variance;
    peers.merge(o.peers);
  }
  /// The standard error of `time`.
  double error() const { return std::sqrt(variance); }
};

struct TimedSite {
  TimedKey key;
  TimedSums sums;
  Lengths lengths{};  ///< of the messages that the calls sent, or received at once
  static auto members(auto& s) { return std::tie(s.key, s.sums, s.lengths); }
};

/// Sites of a process in its contribution; the others share one entry. Derived: 64 sites of 456 bytes take 29 KiB of
/// each snapshot.
inline constexpr std::size_t kMostTimedSites = 64;

}  // namespace latecomer::profiles

// SPDX-License-Identifier: BSD-3-Clause
// The offsets between the clocks of the job. Processes of one kernel and one time namespace read one clock: a clock
// domain. The offset between two domains is an interval that contains the true value. The job renews it while it runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "shim/clock.hpp"

namespace latecomer::shim {

/// The clock data of one process.
struct Clocks {
  std::atomic<Nanoseconds> offset{0};       ///< common time = now() + offset; the clock of rank 0's domain is common
  std::atomic<Nanoseconds> uncertainty{0};  ///< half the width of the interval at the last measurement
  std::atomic<int> looks{0};                ///< number of measurements
  int domains = 1;
  std::vector<Rank> below;     ///< ranks of this domain that hear a new offset from this rank
  std::vector<Rank> children;  ///< lookers of other domains that measure against this rank
  Rank parent = -1;            ///< the rank that this rank measures against; -1: none
  Rank above = -1;             ///< the rank of this domain that this rank hears a new offset from; -1: it measures

  Nanoseconds common_now() const { return now() + offset.load(std::memory_order_relaxed); }
  /// The uncertainty of the last measurement, plus the possible drift since then.
  Nanoseconds uncertainty_now() const;

 private:
  friend void survey_clocks(Clocks&, Rank, const std::vector<Rank>&);
  friend void renew_offset(Clocks&);
  friend void hear_offset(Clocks&);
  void take_offset(Nanoseconds low, Nanoseconds high, Nanoseconds parents);
  std::atomic<Nanoseconds> looked_at_{0};
  std::atomic<Nanoseconds> drift_ppb_{1000};  // until a drift is known: the assumed difference of disciplined clocks
  Nanoseconds tried_at_ = 0;
  std::uint64_t serial_ = 0;
};

extern Clocks* job_clocks_instance __attribute__((visibility("hidden")));
inline Clocks& job_clocks() { return *job_clocks_instance; }

/// Collective over the private communicator, at start. first_of[r]: the first rank in r's clock domain. Lookers
/// exchange ping-pongs along a binomial tree of domains, each with at most log2(domains) others. A new offset goes to
/// the other ranks of a domain along a binomial tree, too.
void survey_clocks(Clocks& clocks, Rank rank, const std::vector<Rank>& first_of);

/// Renews the offset if a second has passed. Call it right after an operation that all ranks have just left. Waits at
/// most 100 us (2 ms with more ranks than cores). Later answers are ignored.
void renew_offset(Clocks& clocks);

/// Takes a newer offset of this domain, if one has arrived, and passes it on.
void hear_offset(Clocks& clocks);

}  // namespace latecomer::shim

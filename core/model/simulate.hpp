// SPDX-License-Identifier: BSD-3-Clause
// The model: simulates schedules in virtual time. The simulation is event-driven and deterministic. It generates
// schedules lazily, so its memory does not grow with the number of messages.
//
// A message of m bytes occupies a send port and a receive port for alpha + m beta. Then it is in flight for a latency,
// which occupies no resource. A port serves transfers first in, first out. A rendezvous enters the queue when both
// sides are ready. An eager message enters it when it is posted, after the sender's overhead. An unmatched message
// occupies no port. The ranks of a host share its ports, and a message between them occupies no port. Reductions,
// copies and the overhead of messages share one processor per rank and lane. With `duplex=half`, a rendezvous also
// waits until the last one in the other direction of the same pair of ranks has left.
#pragma once

#include <vector>

#include "core/algorithms/algorithm.hpp"

namespace latecomer::core {

/// Noise of transfers. Planning never includes it.
struct Jitter {
  double share = 0;  ///< of the port time of a message; exponentially distributed, with the same mean
  std::uint64_t seed = 1;
};

struct Simulation {
  std::vector<Nanoseconds> finish;  ///< [ranks], exit times relative to the zero of the arrivals
  std::int64_t messages = 0;
  Nanoseconds run_time = 0;    ///< first arrival to last exit
  Nanoseconds after_last = 0;  ///< last arrival to last exit
  double mean_elapsed = 0;     ///< mean over the ranks of exit - arrival, nanoseconds
};

/// Simulates `algorithm` on all ranks of `instance` on `network`. `arrivals` may differ from the pattern for which the
/// schedule is built. Returns an error if the schedule cannot finish.
Result<Simulation> simulate(const Algorithm& algorithm, const Instance& instance, const Network& network,
                            const Pattern& arrivals, int lookahead = kLookahead, Jitter jitter = {});

}  // namespace latecomer::core

// SPDX-License-Identifier: BSD-3-Clause
// Lower bounds of run times, which no schedule can beat. Figures compare algorithms with them. They are no predictions.
#pragma once

#include <vector>

#include "core/algorithms/algorithm.hpp"
#include "core/network/network.hpp"

namespace latecomer::core {

struct LowerBound {
  Nanoseconds after_last = 0;
  Nanoseconds run_time = 0;
  bool known = false;  ///< false: no bound is implemented for the collective
};

/// Lower bounds under the network's ports, bandwidth and latency, for the collectives that a policy can dispatch.
/// Allreduce of N bytes on P ranks with arrivals a_0 <= ... <= a_(P-1) ends at the earliest at the largest of
/// - a_(P-m) + (m + P - 1 - [m = P]) N beta / P, for m = 1 to P;
/// - a_(P-1) + N beta + one latency (+ 2 alpha where P >= 3).
/// The first term counts messages over P send ports after the last m ranks arrive. Every element needs m merges of
/// their contributions with the early group (P - 1 merges if m = P), and P - 1 deliveries. The bounds ignore the time
/// of reductions. On hosts of several ranks it is the bound of one rank per host, which arrives with the last of its
/// host; known for reductions only. `sizes`: block sizes, as in Parameters.
LowerBound lower_bound(const Call& call, const Network& network, const Pattern& arrivals,
                       const std::vector<Bytes>& sizes = {});

/// The time to spread an item from one rank to `ranks` ranks in messages of no bytes, as in LogP (Karp, Sahay, Santos,
/// Schauser, SPAA 1993). Every holder forwards the item as often as its processor and its port allow. A receiver holds
/// the item after an overhead, alpha, the latency and another overhead.
Nanoseconds spreading_time(int ranks, const Network& network);

/// A lower bound of the time after the last arrival. For an allreduce it is sharper than lower_bound() in two cases:
/// - Late ranks arrive one by one. Bytes that their ports cannot send before the last arrival occupy the ports of all
///   ranks after it.
/// - Messages cost processor time or alpha. No other rank holds a result before the last rank's contribution has
///   spread to it. After that, the whole vector still passes that rank's port.
/// For other collectives, and on hosts of several ranks, it equals lower_bound(). docs/results/bounds.md derives it.
Nanoseconds least_after_last(const Call& call, const Network& network, const Pattern& arrivals,
                             const std::vector<Bytes>& sizes = {});

}  // namespace latecomer::core

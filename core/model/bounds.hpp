// SPDX-License-Identifier: BSD-3-Clause
// What no schedule can beat. Lower bounds are compared with in every figure; none is a prediction.
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

/// What no schedule can beat under the network's bandwidth and latency (INTERFACE, "What the words mean"). `sizes`: of
/// the blocks, as in Parameters.
LowerBound lower_bound(const Call& call, const Network& network, const Pattern& arrivals,
                       const std::vector<Bytes>& sizes = {});

/// Time from a rank's having something until `ranks` ranks have it, it among them, in messages of no bytes (LogP:
/// whoever has it sends it on as often as its processor and port can, and what it sends is there, and can be sent on,
/// an overhead, alpha, the latency and an overhead later).
Nanoseconds spreading_time(int ranks, const Network& network);

/// A bound of the time after the last arrival that for an allreduce is sharper than lower_bound's where
/// - late ranks come one by one: what their ports cannot have sent by the last arrival takes others' ports after it;
/// - messages cost processors time, or ports beside what their bytes take: nothing that has the last rank's
/// contribution in it is at any
///   other rank before it has spread that far, and then the whole vector has still to pass that rank's port.
/// For others it is lower_bound's. Derived in docs/late_exchange.md.
Nanoseconds least_after_last(const Call& call, const Network& network, const Pattern& arrivals,
                             const std::vector<Bytes>& sizes = {});

}  // namespace latecomer::core

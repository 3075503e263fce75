// SPDX-License-Identifier: BSD-3-Clause
// The model of MPICH 4's own collectives: the schedule that stands for them, in two levels where ranks share hosts.
#pragma once

#include "core/model/simulate.hpp"

namespace latecomer::core {

/// The number of ranks among which native exchanges messages over the network: the hosts where MPICH runs the call in
/// two levels, else all ranks. Two levels are a reduction inside each host, the collective between one leader per host,
/// and a broadcast inside each host. MPICH 4.0.2 has them for most bcasts, and with a commutative operator for
/// allreduce and reduce.
int native_ranks(const Call& call, const Parameters& parameters);

/// Simulates native. The call must have a stand-in (native_stand_in). A root is the leader of its host.
Result<Simulation> simulate_native(const Call& call, const Pattern& arrivals, const Parameters& parameters,
                                   Jitter jitter = {});

}  // namespace latecomer::core

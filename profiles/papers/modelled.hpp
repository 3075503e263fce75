// SPDX-License-Identifier: BSD-3-Clause
// One modelled run, as the publications' programs ran: in lockstep.
#pragma once

#include <string>
#include <string_view>

#include "core/model/simulate.hpp"

namespace latecomer::profiles::papers {

/// A collective of `call` under `algorithm`, planned for and run with `arrivals`, on `network`. Throws if it cannot
/// run.
core::Simulation modelled(const core::Call& call, std::string_view algorithm, const core::Pattern& arrivals,
                          const core::Network& network);

/// "balanced" for no delay, uniform random delays up to `most_ms` otherwise.
core::Pattern random_delays(int ranks, double most_ms, int seed);

/// A network by its specification; throws on a mistake.
core::Network network(std::string_view specification);

}  // namespace latecomer::profiles::papers

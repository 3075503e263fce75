// SPDX-License-Identifier: BSD-3-Clause
// One modelled run in lockstep, as the publications' programs ran.
#pragma once

#include <string_view>

#include "core/model/simulate.hpp"

namespace latecomer::profiles::papers {

/// Plans and runs `call` under `algorithm` with `arrivals` on `network`. Throws if the algorithm cannot serve the call.
core::Simulation modelled(const core::Call& call, std::string_view algorithm, const core::Pattern& arrivals,
                          const core::Network& network);

/// Uniform random delays up to `most_ms`, or balanced arrivals if it is 0.
core::Pattern random_delays(int ranks, double most_ms, int seed);

/// The network of a specification. Throws on a mistake in it.
core::Network network(std::string_view specification);

}  // namespace latecomer::profiles::papers

// SPDX-License-Identifier: BSD-3-Clause
// Closed forms of the time after the last arrival. They replace the simulation where a schedule has too many messages.
// Each form is the number of steps from the algorithm's source times the time of one step on the network.
// The test core.learning compares the closed forms with the simulation.
#pragma once

#include <optional>

#include "core/algorithms/algorithm.hpp"
#include "core/network/network.hpp"

namespace latecomer::core {

/// The approximate time from the last arrival to the last exit, in nanoseconds. `segments`: 0 for the algorithm's own
/// choice. Empty for algorithms without a form: those that plan message by message, and irregular collectives.
std::optional<double> closed_form_after_last(const Algorithm& algorithm, const Call& call, int segments,
                                             const Network& network, const Pattern& arrivals);

}  // namespace latecomer::core

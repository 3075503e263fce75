// SPDX-License-Identifier: BSD-3-Clause
// Closed forms of the time after the last arrival, for algorithms whose messages are too many to be modelled one by
// one. Each is the papers' number of steps times one step of the network. core.learning compares them with the model.
#pragma once

#include <optional>

#include "core/algorithms/algorithm.hpp"
#include "core/network/network.hpp"

namespace latecomer::core {

/// Nanoseconds from the last arrival to the last exit, about. `segments`: 0 for the algorithm's own choice. Empty where
/// no form is known: algorithms that plan message by message, and irregular collectives.
std::optional<double> closed_form_after_last(const Algorithm& algorithm, const Call& call, int segments,
                                             const Network& network, const Pattern& arrivals);

}  // namespace latecomer::core

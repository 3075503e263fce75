// SPDX-License-Identifier: BSD-3-Clause
// Which ranks own segments of a reduction, and how many ranks collect the contributions to each.
#pragma once

#include "core/algorithms/exchange/plan.hpp"

namespace latecomer::core::exchange {

/// The owners of a reduction, by arrival times: the ranks that arrive early enough. Never the sink; empty if no other
/// rank exists.
std::vector<Rank> owners_for(const Problem& problem);

/// Ranks that add up contributions to a segment, the owner among them. Each collects from an equal share of the ranks,
/// and then sends the owner one sum. More than one where many ranks, but not all, arrive last: with one collector a
/// segment of 1,024 ranks, 256 of them late, would be final 256 messages after the last arrival.
int collectors_of(const Problem& problem);

}  // namespace latecomer::core::exchange

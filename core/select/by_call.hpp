// SPDX-License-Identifier: BSD-3-Clause
// Choices that follow from the call alone: the algorithm that stands for MPICH's own in the model, and the algorithm
// that serves a call of a range communicator.
#pragma once

#include "core/algorithms/algorithm.hpp"

namespace latecomer::core {

/// The algorithm whose schedule MPICH 4 runs for that call between nodes, by MPICH's own thresholds; the model takes it
/// for native. nullptr: the catalogue has no such algorithm.
const Algorithm* native_stand_in(const Call& call);

/// The algorithm that serves a call of a range communicator. `element_bytes` 0: blocks of different sizes, of which a
/// message holds one.
const Algorithm& range_algorithm(const Call& call);

}  // namespace latecomer::core

// SPDX-License-Identifier: BSD-3-Clause
// The sizes of jobs that readers of files accept. A larger number shows that the data are damaged.
#pragma once

#include "core/base/types.hpp"

namespace latecomer::profiles {

/// Derived: the largest machines have ten million cores. A reader that takes a bit per rank then needs 2 MB.
inline constexpr int kMostRanks = 1 << 24;

/// Whether a file may name this rank of a job of that size.
constexpr bool is_rank_of(core::Rank rank, int ranks) { return rank >= 0 && rank < ranks && ranks <= kMostRanks; }

}  // namespace latecomer::profiles

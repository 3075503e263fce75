// SPDX-License-Identifier: BSD-3-Clause
// Which epochs of a communicator are logged in mode observe. At level L, every rank logs one epoch of each block of 2^L
// epochs. The epochs of a level are among those of the level below, and depend on their number only. So ranks need no
// agreement: an epoch is complete if it is logged at the highest level that a rank has.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/base/text.hpp"
#include "core/base/types.hpp"

namespace latecomer::core {

class EpochSample {
 public:
  /// Derived: one epoch of 65,536 stands for 2^23 calls, a second of calls of 120 ns.
  static constexpr int kMostLevel = 16;

  /// Whether the epoch of this number is logged. Which epoch of a block it is depends on a hash, so that no phase of a
  /// program's loop is preferred.
  static bool has_epoch(std::uint64_t epoch, int level) {
    for (int l = level; l > 0; --l) {
      const std::uint64_t block = epoch >> l, half = epoch >> (l - 1) & 1;
      if ((mix64(block * (kMostLevel + 1) + static_cast<std::uint64_t>(l)) & 1) != half) return false;
    }
    return true;
  }
  /// The level at which logging keeps its budget. `price`: nanoseconds of the run that pay for one logged epoch.
  /// `length`: those of an epoch.
  static int level_for(Nanoseconds price, Nanoseconds length) {
    const auto stretch = static_cast<std::uint64_t>(price / std::max<Nanoseconds>(length, 1));
    return std::min(static_cast<int>(std::bit_width(stretch)), kMostLevel);
  }
};

}  // namespace latecomer::core

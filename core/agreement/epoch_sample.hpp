// SPDX-License-Identifier: BSD-3-Clause
// Which epochs of a communicator are logged in mode observe. At level L, every rank logs one epoch of each block of 2^L
// epochs. The epochs of a level are among those of the level below, and depend on their number only. So ranks need no
// agreement: an epoch is complete if it is logged at the highest level that a rank has.
#pragma once

#include <algorithm>
#include <array>
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

/// How many epochs a logged epoch stands for, in one process. Only epochs of about the same length stand for each
/// other, because a long wait makes its epoch long. A class holds the lengths from a power of 2 to the next one.
///
/// A logged epoch stands for those of its class since the last one, but for kMost times as many as its level says at
/// most. So an epoch that was certain to be logged stands for itself alone. No epoch is represented before it has
/// passed: the estimates lack those that come after the last logged one of their class, and left() says how long they
/// took.
class EpochClasses {
 public:
  struct Weight {
    std::uint32_t epochs = 1;  ///< the logged epoch stands for so many, with itself
    double time = 1;           ///< their time, in lengths of the logged one
    std::uint8_t of_class = 0;
    std::uint32_t number = 0;  ///< of the logged epoch in its class, from 1 on
  };
  /// An epoch of that length was not logged.
  void leave_out(Nanoseconds length) {
    Class& its = classes_[class_of(length)];
    ++its.epochs;
    its.time += length;
    left_ += length;
  }
  /// An epoch of that length was logged at that level.
  Weight take(Nanoseconds length, int level) {
    const std::size_t at = class_of(length);
    Class& its = classes_[at];
    const std::uint32_t others = level == 0 ? 0 : std::min(its.epochs, (kMost << level) - 1);
    const Nanoseconds time = others == its.epochs ? its.time : its.time / its.epochs * others;
    its.epochs -= others;
    its.time -= time;
    left_ -= time;
    return {1 + others, 1 + static_cast<double>(time) / static_cast<double>(std::max<Nanoseconds>(length, 1)),
            static_cast<std::uint8_t>(at), ++its.logged};
  }
  /// The time of the epochs for which no logged one stands.
  Nanoseconds left() const { return left_; }

 private:
  struct Class {
    Nanoseconds time = 0;      ///< of the epochs that were not logged, and for which none stands yet
    std::uint32_t epochs = 0;  ///< their number
    std::uint32_t logged = 0;
  };
  static std::size_t class_of(Nanoseconds length) {
    const int octave = std::bit_width(static_cast<std::uint64_t>(std::max<Nanoseconds>(length, 0)));
    return std::min(static_cast<std::size_t>(octave), kClasses - 1);
  }
  /// Derived: the distance of logged epochs of a class is four times its mean in one of 50 cases. The epochs beyond
  /// wait for the next logged one.
  static constexpr std::uint32_t kMost = 4;
  /// Derived: the last class begins at 9 minutes. 640 bytes per communicator.
  static constexpr std::size_t kClasses = 40;
  std::array<Class, kClasses> classes_{};
  Nanoseconds left_ = 0;
};

}  // namespace latecomer::core

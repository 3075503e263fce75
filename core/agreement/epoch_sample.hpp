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
/// A logged epoch stands for those of its class since the last one, but not for many more than its level says. So an
/// epoch that was certain to be logged stands for itself alone. No epoch is represented before it has passed: the
/// estimates lack those after the last logged one of their class. left() says how long they took.
class EpochClasses {
 public:
  struct Weight {
    std::uint32_t epochs = 1;  ///< the logged epoch stands for so many, with itself
    double time = 1;           ///< their time, in lengths of the logged one
  };
  /// An epoch of that length was not logged. `slice`: the part of the process's time that counts as its own, as epochs
  /// of several communicators may cover the same time.
  void leave_out(Nanoseconds length, Nanoseconds slice) {
    Class& its = classes_[class_of(length)];
    ++its.epochs;
    its.time += length;
    its.slices += slice;
    left_ += slice;
  }
  /// An epoch of that length was logged at that level.
  Weight take(Nanoseconds length, int level) {
    Class& its = classes_[class_of(length)];
    // Derived: logged epochs of a class are as far apart as the level says in the mean. With a quarter more, what a
    // long distance leaves is made up for later.
    const std::uint32_t others = level == 0 ? 0 : std::min(its.epochs, (5U << level) / 4 - 1);
    if (others == 0) return {};
    const Nanoseconds time = its.time / its.epochs * others, slices = its.slices / its.epochs * others;
    its.epochs -= others;
    its.time -= time;
    its.slices -= slices;
    left_ -= slices;
    return {1 + others, 1 + static_cast<double>(time) / static_cast<double>(std::max<Nanoseconds>(length, 1))};
  }
  /// The time of the epochs for which no logged one stands.
  Nanoseconds left() const { return left_; }

 private:
  /// Of the epochs that were not logged, and for which none stands yet.
  struct Class {
    Nanoseconds time = 0, slices = 0;
    std::uint32_t epochs = 0;
  };
  static std::size_t class_of(Nanoseconds length) {
    const int octave = std::bit_width(static_cast<std::uint64_t>(std::max<Nanoseconds>(length, 0)));
    return std::min(static_cast<std::size_t>(octave), kClasses - 1);
  }
  /// Derived: the last class begins at 9 minutes. 960 bytes per communicator.
  static constexpr std::size_t kClasses = 40;
  std::array<Class, kClasses> classes_{};
  Nanoseconds left_ = 0;
};

}  // namespace latecomer::core

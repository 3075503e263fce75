// SPDX-License-Identifier: BSD-3-Clause
// Plans that this process has made, kept for other calls and other communicators of the same shape. One plan serves all
// sizes of a class. The cache saves time and decides nothing.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/algorithms/algorithm.hpp"

namespace latecomer::core {

class PlannedTables {
 public:
  /// Keeps the tables that were used last, up to `most_bytes` bytes.
  explicit PlannedTables(std::size_t most_bytes = 4 << 20) : most_(most_bytes) {}

  /// An instance for the schedule of rank `parameters.only`, whose table is the one planned for the call's size class.
  /// For algorithms with plans_segments and a number of segments. Any thread may ask; others do not wait while one
  /// plans.
  Instance instance(const Algorithm& algorithm, const Call& call, const Pattern& pattern, const Parameters& parameters);

  std::uint64_t planned() const;  ///< tables computed so far
  std::size_t bytes() const;      ///< kept

 private:
  struct Key {
    const Algorithm* algorithm;
    int ranks, segments;
    Rank root, only;
    Elements count;
    Bytes element_bytes;
    bool commutative, overlap;
    std::vector<Nanoseconds> arrivals;
    auto operator<=>(const Key&) const = default;
  };
  struct Kept {
    std::shared_ptr<const std::vector<int>> table;
    std::uint64_t used;
  };
  static std::size_t size_of(const Key& key, const Kept& kept) {
    return sizeof(Key) + sizeof(Kept) + key.arrivals.size() * sizeof(Nanoseconds) + kept.table->size() * sizeof(int);
  }
  void keep_table(Key key, std::shared_ptr<const std::vector<int>> table);

  mutable std::mutex mutex_;
  std::map<Key, Kept> tables_;
  std::size_t most_, bytes_ = 0;
  std::uint64_t clock_ = 0, planned_ = 0;
};

}  // namespace latecomer::core

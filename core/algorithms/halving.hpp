// SPDX-License-Identifier: BSD-3-Clause
// Parts that algorithms for powers of two share: the folding of other numbers of ranks, and the levels of recursive
// halving.
#pragma once

#include <bit>
#include <vector>

#include "core/algorithms/algorithm.hpp"

namespace latecomer::core {

/// Reduces P ranks to the largest power of two that is at most P. Of the first 2 (P - pow2) ranks, rank 2i gives its
/// vector to rank 2i+1. The remaining ranks have numbers from 0 to pow2 - 1.
class Folding {
 public:
  explicit Folding(int ranks)
      : pow2_(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))), folded_(ranks - pow2_) {}
  int pow2() const { return pow2_; }
  /// Whether r gives its vector to r + 1 and has no number.
  bool gives(Rank r) const { return r < 2 * folded_ && r % 2 == 0; }
  /// Whether r takes the vector of r - 1.
  bool takes(Rank r) const { return r < 2 * folded_ && r % 2 == 1; }
  /// The number of r, or of r + 1 if r gives its vector.
  int id_of(Rank r) const { return r < 2 * folded_ ? r / 2 : r - folded_; }
  Rank rank_of(int id) const { return id < folded_ ? 2 * id + 1 : id + folded_; }

 private:
  int pow2_, folded_;
};

/// One step of recursive halving: each of two partners keeps one half of the blocks that both have.
struct HalvingLevel {
  Rank partner;
  Part kept, given;
  OpId sent = kNoOp;  ///< the send of `given`, which the algorithm sets
};

/// The levels of `me`. Partners are at distance 1, 2, 4, ..., which keeps operands in rank order. The vector is cut
/// into pow2 blocks.
inline std::vector<HalvingLevel> halving_levels(const Folding& folding, Elements count, Rank me) {
  std::vector<HalvingLevel> levels;
  const auto at = [&](int block) { return part_of(count, folding.pow2(), block).offset; };
  const int id = folding.id_of(me);
  int lo = 0, hi = folding.pow2();
  for (int mask = 1; mask < folding.pow2(); mask <<= 1) {
    const int mid = (lo + hi) / 2;
    const Part lower{at(lo), at(mid) - at(lo)}, upper{at(mid), at(hi) - at(mid)};
    const bool keeps_lower = (id & mask) == 0;
    levels.push_back({folding.rank_of(id ^ mask), keeps_lower ? lower : upper, keeps_lower ? upper : lower});
    (keeps_lower ? hi : lo) = mid;
  }
  return levels;
}

}  // namespace latecomer::core

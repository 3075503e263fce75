// SPDX-License-Identifier: BSD-3-Clause
// Pieces that the algorithms for powers of two share: how other numbers of ranks are folded into one, and the levels of
// recursive halving.
#pragma once

#include <bit>
#include <vector>

#include "core/algorithms/algorithm.hpp"

namespace latecomer::core {

/// Ranks beyond the largest power of two are folded into their neighbours, 2i into 2i+1; the others are numbered from
/// 0.
class Folding {
 public:
  explicit Folding(int ranks)
      : pow2_(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))), folded_(ranks - pow2_) {}
  int pow2() const { return pow2_; }
  /// Whether r gives its vector to r + 1 and takes no part.
  bool gives(Rank r) const { return r < 2 * folded_ && r % 2 == 0; }
  /// Whether r stands for r - 1 too.
  bool takes(Rank r) const { return r < 2 * folded_ && r % 2 == 1; }
  /// Number of r, or of who stands for it.
  int id_of(Rank r) const { return r < 2 * folded_ ? r / 2 : r - folded_; }
  Rank rank_of(int id) const { return id < folded_ ? 2 * id + 1 : id + folded_; }

 private:
  int pow2_, folded_;
};

/// One step of recursive halving: of the blocks that two partners share each keeps one half.
struct HalvingLevel {
  Rank partner;
  Part kept, given;
  OpId sent = kNoOp;  ///< the send of `given`, for the algorithm to note
};

/// The levels of `me`: partners at distance 1, 2, 4, ..., so that operands stay in rank order; the vector is cut into
/// as many blocks as there are numbers.
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

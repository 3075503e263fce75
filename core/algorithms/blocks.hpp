// SPDX-License-Identifier: BSD-3-Clause
// Parts that scatter, gather and bcast share: the places of ranks in a binomial tree, and the walks along a list and
// along a tree. Block r of a rooted buffer belongs to rank r.
// Source: Proficz 2020 (Cluster Computing 23), sections 2.1 and 4.
#pragma once

#include "core/algorithms/pipeline.hpp"

namespace latecomer::core {

/// The places of ranks in the tree. For a flat pattern all three equal `rotated`.
enum class Placing {
  rotated,     ///< virtual rank 0 is the root; the others follow in rank order
  early_near,  ///< ranks that arrive early receive in early phases (scatter, bcast)
  early_far,   ///< ranks that arrive early send in early phases; the latest are next to the root (gather)
};

/// The binomial tree over virtual ranks. The root is 0, and the parent of v is v without its lowest set bit. The
/// subtree of v has the virtual ranks v to v + size(v) - 1.
class Tree {
 public:
  Tree(const Instance& instance, Placing placing);
  Rank rank_at(int v) const { return table_[static_cast<std::size_t>(v)]; }
  int id_of(Rank r) const { return table_[static_cast<std::size_t>(ranks_ + r)]; }
  int ranks() const { return ranks_; }
  Rank parent_of(int v) const { return rank_at(v & (v - 1)); }
  /// The size of v's subtree in a full tree: a power of two.
  int reach(int v) const;
  int size(int v) const { return std::min(reach(v), ranks_ - v); }
  /// The number of virtual ranks from v on, at most `most`, that stand for consecutive ranks.
  int run(int v, int most) const;

 private:
  int ranks_;
  std::span<const int> table_;  // [2 * ranks]: rank by virtual rank, then virtual rank by rank
};

// In the background lane, receives and the forwarding of data do not wait for the arrival of the process.

/// The root sends every rank its block (scatter) or the whole vector (bcast), in the order of `order`.
Schedule list_from_root(const Instance& instance, Rank me, std::span<const Rank> order, Lane lane);
/// Every rank sends each child the blocks of the child's subtree.
Schedule scatter_tree(const Instance& instance, Rank me, Placing placing, Lane lane);
/// The root receives every block, in the order of `order`.
Schedule gather_list(const Instance& instance, Rank me, std::span<const Rank> order);
/// As gather_list, but a rank sends only after it has the root's token. The first segment of a block arrives while the
/// rest of the previous block does.
Schedule gather_synchronised(const Instance& instance, Rank me, std::span<const Rank> order, Lane lane);
/// Every rank receives from its children and sends the blocks of its subtree to its parent.
Schedule gather_tree(const Instance& instance, Rank me, Placing placing, Lane lane);
/// Every rank sends the whole vector to its children.
Schedule bcast_tree(const Instance& instance, Rank me, Placing placing, Lane lane);

}  // namespace latecomer::core

// SPDX-License-Identifier: BSD-3-Clause
// Pieces that scatter, gather and bcast share: who is where in a binomial tree, and the walks along a list and along a
// tree. Block r of a rooted buffer belongs to rank r. Source: paper 001, sections 2.1 and 4; ALGORITHMS 2.
#pragma once

#include "core/algorithms/pipeline.hpp"

namespace latecomer::core {

/// How ranks are placed in the tree. Without a pattern all three are `rotated`.
enum class Placing {
  rotated,     ///< counted from the root
  early_near,  ///< who arrives early receives in an early phase (scatter, bcast)
  early_far,   ///< who arrives early sends in an early phase, the last sit next to the root (gather)
};

/// The binomial tree over virtual ranks: v's parent is v without its lowest bit; the root is 0. Node v stands for the
/// virtual ranks v to v + size(v) - 1.
class Tree {
 public:
  Tree(const Instance& instance, Placing placing);
  Rank rank_at(int v) const { return table_[static_cast<std::size_t>(v)]; }
  int id_of(Rank r) const { return table_[static_cast<std::size_t>(ranks_ + r)]; }
  int ranks() const { return ranks_; }
  Rank parent_of(int v) const { return rank_at(v & (v - 1)); }
  /// Distance to the first virtual rank that v does not stand for, were there enough: a power of two.
  int reach(int v) const;
  int size(int v) const { return std::min(reach(v), ranks_ - v); }
  /// How many virtual ranks from v on, at most `most`, are consecutive ranks.
  int run(int v, int most) const;

 private:
  int ranks_;
  std::span<const int> table_;  // rank by virtual rank, then virtual rank by rank
};

// `lane`: background if receipts, and what follows on one, need not wait for the process.

/// The root sends every rank its block (scatter) or all (bcast), along `order`.
Schedule list_from_root(const Instance& instance, Rank me, std::span<const Rank> order, Lane lane);
/// The root sends its children what they and those below need; they pass it on.
Schedule scatter_tree(const Instance& instance, Rank me, Placing placing, Lane lane);
/// The root receives every block, along `order`.
Schedule gather_list(const Instance& instance, Rank me, std::span<const Rank> order);
/// The same, but nobody sends before it has the root's token; the first part of the next block comes while the rest of
/// the last one does.
Schedule gather_synchronised(const Instance& instance, Rank me, std::span<const Rank> order, Lane lane);
/// Everybody receives from its children and sends what it has to its parent.
Schedule gather_tree(const Instance& instance, Rank me, Placing placing, Lane lane);
/// Everybody sends all to its children.
Schedule bcast_tree(const Instance& instance, Rank me, Placing placing, Lane lane);

}  // namespace latecomer::core

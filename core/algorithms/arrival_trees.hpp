// SPDX-License-Identifier: BSD-3-Clause
// Trees in the order of arrival, between hosts and inside each: a reduction climbs them, a broadcast descends them.
// Three algorithms are made of them: allreduce, reduce and bcast.
#pragma once

#include <array>

#include "core/algorithms/algorithm.hpp"

namespace latecomer::core {

/// The ranks by host, and each host's place in the trees. All ranks have the same, as they have equal instances. Host 0
/// is the root's. The others follow in the order of their last arrivals: early ones near the root, where they add
/// up the data of late ones. Inside a host, the same order holds. The first rank is the host's leader.
class Placement {
 public:
  /// root: the rank at which a reduction ends or a broadcast begins; -1: the rank that arrives last. late_first: late
  /// ranks are near the root instead. That is better for a reduction in one segment, which waits for the longest path.
  Placement(const Instance& instance, Rank root, bool late_first);
  int hosts() const { return static_cast<int>(starts().size()) - 1; }
  /// The ranks of host k, leader first.
  std::span<const int> ranks_of(int k) const;

 private:
  std::span<const int> starts() const { return table_.subspan(1, static_cast<std::size_t>(table_[0]) + 1); }
  std::span<const int> table_;  // number of hosts H, [H + 1] first places, [P] ranks
};

/// The neighbours of a place in a tree.
struct Neighbours {
  int parent = -1;
  std::vector<int> children;  ///< those with the largest subtree first
};

/// Place p of n in one of two binary trees with the same root, place 0. No other place has children in both trees, so
/// a vector whose halves take one tree each passes the ports of each place once in each direction.
/// Source: Sanders, Speck, Träff 2009. Here parents come before their children, not in the order of ranks.
Neighbours in_binary_tree(int p, int n, int tree);

/// The neighbours in these trees for a reduction to all. While the vector spreads, every place but 1 sends it once, and
/// place 0 needs the sum of the others. So place 1 collects this sum from both trees and sends it to place 0. Place 1
/// is a leaf when the vector spreads.
Neighbours in_collecting_tree(int p, int n, int tree);
Neighbours in_spreading_tree(int p, int n, int tree);

/// Place p of n in a binomial tree with the root 0.
Neighbours in_binomial_tree(int p, int n);

/// The number of segments that fits the network. 1 stands for one binomial tree.
int tree_segments(const Call& call, const Network& network, int hosts, int most_ranks);

/// The time in which `segments` segments spread from the root, in nanoseconds.
double tree_time(const Call& call, const Network& network, int hosts, int most_ranks, int segments);

/// The roles of the trees of an operation: reduce to the root, spread from it, or both.
struct TreeRoles {
  bool collects = false, spreads = false;
};
Schedule tree_walk(const Instance& instance, Rank me, TreeRoles roles);

}  // namespace latecomer::core

// SPDX-License-Identifier: BSD-3-Clause
// The tree of the exchange. Records of calls go up to the leader of a communicator, and the leader's answers and
// announcements go down. Every rank computes its own place from the placement, which is equal on all ranks.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/base/types.hpp"

namespace latecomer::core {

/// The most children of a node. Derived: a node merges one record per child and call. With 32 children, three levels
/// hold 33,825 ranks. With fewer children, the tree has more levels and messages take longer. With more children, a
/// node takes more time per call.
inline constexpr std::size_t kFanOut = 32;

/// The place of one rank.
struct TreePlace {
  Rank parent = -1;            ///< -1: the leader
  std::vector<Rank> children;  ///< in the order in which the node sends to them
  int level = 0;               ///< distance from the leader
  int depth = 0;               ///< depth of the whole tree: the greatest level
};

/// The place of `rank` in the tree over all ranks of `hosts`, [ranks]: the number of each rank's host. The leader is
/// rank 0. A node has at most kFanOut children, and the depth is the least that this allows. Where it costs no level,
/// the ranks of a host are below one rank of the host. Takes time and, while it runs, memory in proportion to the
/// ranks.
TreePlace place_in_tree(std::span<const int> hosts, Rank rank);
/// The places of all ranks, [ranks].
std::vector<TreePlace> places_in_tree(std::span<const int> hosts);

}  // namespace latecomer::core

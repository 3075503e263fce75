// SPDX-License-Identifier: BSD-3-Clause
// Gather and scatter along any tree, mostly of irregular blocks. For gatherv and scatterv, one element of their
// schedules is the whole block of a rank. So a schedule does not depend on block sizes, which travel with the data.
// Only the tree depends on the expected sizes. Source: Träff 2019 (IEEE TPDS 30).
#pragma once

#include "core/algorithms/algorithm.hpp"
#include "core/trees/tree.hpp"

namespace latecomer::core {

/// The subtree of a child: its root, and the places of its blocks in messages.
struct TreeBranch {
  Rank peer = -1;
  int first = 0, count = 0;
};

/// One rank's part of a tree. The blocks of a subtree have consecutive places. A place is a rank if the tree is
/// strongly ordered, otherwise a position in preorder.
struct TreePart {
  Rank parent = -1;                  ///< -1 at the root
  int first = 0, count = 1;          ///< places of the subtree's blocks
  int own = 0;                       ///< place of the own block
  std::vector<TreeBranch> children;  ///< in the order in which a gather receives from them
};

/// Gathers or scatters along one rank's part of a tree. `order`: [ranks], the rank of each place; empty if places are
/// ranks. `order` must outlive the schedule.
Schedule gather_part(const Call& call, Rank me, TreePart part, std::span<const Rank> order);
Schedule scatter_part(const Call& call, Rank me, TreePart part, std::span<const Rank> order);

/// Gathers or scatters along a tree of `kind` for the instance's sizes, arrivals and network.
Schedule along_tree(const Instance& instance, Rank me, TreeKind kind);

/// Gathers or scatters in two levels: inside each host, and between hosts. Serves blocks of one size, too. Each byte
/// leaves its host once, in one message of the whole host.
Schedule along_hosts(const Instance& instance, Rank me);

/// The costs of `network` as the tree algorithms use them: c(x) = alpha + beta x, a latency, and a copy per byte.
TreeProblem tree_problem(const Network& network);

/// The bytes of the blocks in a slice of a rank's buffer, for the model. Requires that a schedule of the instance has
/// been generated.
Bytes irregular_bytes(const Instance& instance, Rank me, const Slice& slice);

}  // namespace latecomer::core

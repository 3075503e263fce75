// SPDX-License-Identifier: BSD-3-Clause
// Gatherv and scatterv along a tree. An element of their schedules is a rank's whole block, whatever its size: so a
// schedule does not depend on sizes, which travel with the data; only the tree is built from those that were expected.
// Source: paper 003; ALGORITHMS 4.
#pragma once

#include "core/algorithms/algorithm.hpp"
#include "core/trees/tree.hpp"

namespace latecomer::core {

/// A subtree: who sends it (gather), or gets it (scatter), and which places its blocks have in messages.
struct Branch {
  Rank peer = -1;
  int first = 0, count = 0;
};

/// What one rank has to know of a tree. The blocks of a subtree have consecutive places: ranks, if the tree is strongly
/// ordered, else positions in preorder.
struct TreePart {
  Rank parent = -1;              ///< -1: the root
  int first = 0, count = 1;      ///< places of this rank's subtree
  int own = 0;                   ///< place of its own block
  std::vector<Branch> children;  ///< as a gather receives them
};

/// `order`: [ranks], the rank whose block has a place; empty: places are ranks. Must outlive the schedule.
Schedule gather_part(const Call& call, Rank me, TreePart part, std::span<const Rank> order);
Schedule scatter_part(const Call& call, Rank me, TreePart part, std::span<const Rank> order);

/// The same along the tree of a kind, built from the instance's sizes, arrivals and network.
Schedule along_tree(const Instance& instance, Rank me, TreeKind kind);

/// What a message costs here, as the trees' programs have it: c(x) = alpha + beta x, a latency, and a copy.
TreeProblem tree_problem(const Network& network);

/// Bytes of the blocks in a slice of a rank's buffers, once a schedule of the instance has been generated: what the
/// model charges for.
Bytes irregular_bytes(const Instance& instance, Rank me, const Slice& slice);

}  // namespace latecomer::core

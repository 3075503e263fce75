// SPDX-License-Identifier: BSD-3-Clause
// Trees for irregular gather and scatter in the linear-time, one-ported model: their cost, and programs that find good
// trees. Every block has its own size. A node receives from its children one after the other, then sends all its blocks
// to its parent in one message. A scatter reverses a gather and takes the same time. The same programs find broadcast
// and reduction trees. Source: Träff 2019 (IEEE TPDS 30). Knows nothing of MPI and of schedules.
#pragma once

#include <string_view>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/types.hpp"

namespace latecomer::core {

/// A problem over p ranks. The caller chooses the units. Results are exact for integers below 2^53.
struct TreeProblem {
  std::vector<double> sizes;     ///< [p], block sizes, >= 0
  std::vector<double> alpha{0};  ///< start-up per message: one value, or [p * p] by sender, then receiver
  std::vector<double> beta{0};   ///< time per unit of size: one value, or [p * p]
  std::vector<double> gamma{0};  ///< local copy per unit of size: one value, or [p]
  double latency = 0;            ///< time in flight of every message; occupies no rank; not in the paper
  std::vector<double> arrivals;  ///< [p], or empty if all ranks arrive at 0; a rank is idle before it arrives
  bool whole = false;            ///< broadcast and reduction: every message has the size of the largest block

  int ranks() const { return static_cast<int>(sizes.size()); }
  bool homogeneous() const { return alpha.size() == 1 && beta.size() == 1; }
  double arrival(Rank r) const { return arrivals.empty() ? 0 : arrivals[static_cast<std::size_t>(r)]; }
  /// The time to copy the own block. Leaves do not copy.
  double copy(Rank r) const {
    return (gamma.size() == 1 ? gamma[0] : gamma[static_cast<std::size_t>(r)]) * sizes[static_cast<std::size_t>(r)];
  }
  /// The delay between a sender's readiness and the time at which its message can occupy the receiver.
  double lag(double size) const { return size == 0 ? 0 : latency; }
  /// The time of a message of `size`. An empty message takes no time.
  double message(Rank from, Rank to, double size) const {
    if (size == 0) return 0;
    const auto link = static_cast<std::size_t>(from) * sizes.size() + static_cast<std::size_t>(to);
    return (alpha.size() == 1 ? alpha[0] : alpha[link]) + (beta.size() == 1 ? beta[0] : beta[link]) * size;
  }
};

/// A tree and its cost.
struct RankTree {
  Rank root = -1;
  double cost = 0;                          ///< completion time at the root
  std::vector<Rank> parent;                 ///< [p], -1 at the root
  std::vector<std::vector<Rank>> children;  ///< [p], in the order in which a gather receives them

  /// Makes `child` the last child of `above`.
  void attach(Rank child, Rank above);
  /// The order of blocks in a message: the block of a node, then those of its children. Shape [p].
  std::vector<Rank> preorder() const;
  /// The senders of a gather's messages. In this order, messages can be sent one after the other, and every node
  /// receives from its children in their order. Shape [p - 1]. A scatter sends the messages in reverse order, from the
  /// parents.
  std::vector<Rank> senders() const;
};

enum class TreeKind { linear, binary, binomial, adaptive, optimal, two_block, sorted };
std::string_view name_of(TreeKind kind);
Result<TreeKind> parse_tree_kind(std::string_view name);

/// Forms of the optimal program.
enum class TreeForm {
  exact,    ///< the exact minimum
  paper,    ///< figures 5 and 6 of the paper: a root at the right end copies its block after receiving
  program,  ///< as `paper`, but a range of two has its root at the left where allowed: gives the published figures
};

struct TreeOptions {
  Rank root = -1;  ///< -1: any root of least cost
  TreeForm form = TreeForm::exact;
  bool plain = false;  ///< optimal: use the cubic program even if the quadratic one is exact
};

/// Finds the tree of a kind:
/// - linear: every rank sends to the root, in rank order.
/// - binary: the cheapest ordered tree with at most two children per node. Homogeneous costs: O(p^3) time, p^2 memory.
///   Non-homogeneous costs: O(p^4) time, p^3 memory.
/// - binomial: joins neighboring ranges in rank order and ignores sizes. O(p).
/// - adaptive: as binomial, but the range that is cheaper to send sends. O(p).
/// - optimal: the cheapest strongly ordered tree. Homogeneous costs: p^2 memory (32 MB for p = 2000). O(p^2) time if
///   the copy of a block never takes longer than its message, otherwise O(p^3). Non-homogeneous costs: O(p^5) time.
/// - two_block: a tree over small blocks, a tree over large blocks, and one message between their roots. Not ordered.
/// - sorted: the cheapest ordered tree over several orders of the ranks by arrival and size. Homogeneous costs only. A
///   heuristic, because finding the best tree without an order is NP-hard.
/// An error says which parts of the problem do not fit together or are not supported.
Result<RankTree> plan_tree(TreeKind kind, const TreeProblem& problem, const TreeOptions& options = {});

/// The completion time of any tree (definition 2 of the paper), with arrivals. Nodes copy their blocks at the best
/// time.
double completion(const TreeProblem& problem, const RankTree& tree);

namespace trees {
// The programs behind plan_tree. `root`: -1 for any.

/// A merge of two neighboring ranges of ranks: `from` sends all its blocks to `to`.
struct Merge {
  Rank from, to;
};
/// Builds the tree of a list of merges, which gives the order of each node's children. The cost is 0.
RankTree tree_of(int ranks, Rank root, const std::vector<Merge>& merges);

/// A range of places and the tree over it.
struct Block {
  Rank root = -1;
  double time = 0, size = 0;
  double copy = 0;  ///< time to copy the root's own block
  bool leaf = true;
};
/// Joins two neighboring ranges as binomial trees do (proposition 1). The range with the given root receives. Otherwise
/// the right range receives, or, if `adaptive`, the left range if it is then complete earlier. Sets `leftwards` if the
/// right range sends.
Block join(const TreeProblem& problem, const Block& left, const Block& right, bool root_in_left, bool root_in_right,
           bool adaptive, bool& leftwards);

RankTree optimal_cubic(const TreeProblem& problem, Rank root, TreeForm form);
/// Exact if no copy costs more than a message of the same block. optimal.cpp has the proof.
RankTree optimal_quadratic(const TreeProblem& problem, Rank root);
bool quadratic_is_exact(const TreeProblem& problem);
RankTree optimal_nonhomogeneous(const TreeProblem& problem, Rank root, bool paper);
RankTree binary(const TreeProblem& problem, Rank root);
RankTree binary_nonhomogeneous(const TreeProblem& problem, Rank root);
}  // namespace trees

}  // namespace latecomer::core

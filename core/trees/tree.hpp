// SPDX-License-Identifier: BSD-3-Clause
// Trees for irregular gather and scatter in the linear-time, one-ported model: what they cost, and how to find good
// ones. Block r has its own size; a node collects from one child after the other and then sends everything it has to
// its parent in one message (a scatter is the same in reverse and takes as long). Broadcast and reduction trees are
// found by the same programs. Source: paper 003; ALGORITHMS 4. Knows nothing of MPI and nothing of schedules.
#pragma once

#include <string_view>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/types.hpp"

namespace latecomer::core {

/// A problem over p ranks. Units are the caller's; all figures are exact as long as they are integers below 2^53.
struct TreeProblem {
  std::vector<double> sizes;     ///< [p], not negative
  std::vector<double> alpha{0};  ///< start-up per message: one figure, or [p * p] by sender, then receiver
  std::vector<double> beta{0};   ///< time per unit of size: the same shapes
  std::vector<double> gamma{0};  ///< local copy per unit of size: one figure, or [p]
  double latency = 0;            ///< of every message, time in flight that occupies nobody; the paper has none
  std::vector<double> arrivals;  ///< [p], or empty: all at 0. A rank does nothing before it arrives.
  bool whole = false;            ///< broadcast and reduction: every message has the size of the largest block

  int ranks() const { return static_cast<int>(sizes.size()); }
  bool homogeneous() const { return alpha.size() == 1 && beta.size() == 1; }
  double arrival(Rank r) const { return arrivals.empty() ? 0 : arrivals[static_cast<std::size_t>(r)]; }
  /// Copying the own block, which a leaf need not do.
  double copy(Rank r) const {
    return (gamma.size() == 1 ? gamma[0] : gamma[static_cast<std::size_t>(r)]) * sizes[static_cast<std::size_t>(r)];
  }
  /// How much later than its sender is ready a message of `size` can begin to occupy its receiver.
  double lag(double size) const { return size == 0 ? 0 : latency; }
  /// A message of `size`; nothing costs nothing.
  double message(Rank from, Rank to, double size) const {
    if (size == 0) return 0;
    const auto link = static_cast<std::size_t>(from) * sizes.size() + static_cast<std::size_t>(to);
    return (alpha.size() == 1 ? alpha[0] : alpha[link]) + (beta.size() == 1 ? beta[0] : beta[link]) * size;
  }
};

/// A tree and what it costs.
struct RankTree {
  Rank root = -1;
  double cost = 0;                          ///< completion time at the root, from time 0 on
  std::vector<Rank> parent;                 ///< [p], -1 at the root
  std::vector<std::vector<Rank>> children;  ///< [p], in the order in which a gather receives them

  /// Blocks in the order in which a message carries them: a node, then its children's. Shape [p].
  std::vector<Rank> preorder() const;
  /// The senders of a gather's messages, each to its parent, in an order in which one message after the other can be
  /// sent and every node receives from its children in their order. Shape [p - 1]. A scatter sends the same messages
  /// backwards, from the parents.
  std::vector<Rank> senders() const;
};

enum class TreeKind { linear, binary, binomial, adaptive, optimal, two_block, sorted };
std::string_view name_of(TreeKind kind);
Result<TreeKind> parse_tree_kind(std::string_view name);

/// Forms of the optimal program.
enum class TreeForm {
  exact,    ///< what is really least
  paper,    ///< Figures 5 and 6: a root at the right end copies its block only after receiving
  program,  ///< the same as the paper's own program computes it: it roots every range of two at the left, if it may
};

struct TreeOptions {
  Rank root = -1;  ///< -1: any root of least cost
  TreeForm form = TreeForm::exact;
  bool plain = false;  ///< optimal: the cubic program also where the quadratic one is exact
};

/// The tree of a kind:
/// - linear: everybody sends to the root, in rank order.
/// - binary: the cheapest ordered tree of at most two children. Homogeneous: O(p^3) time and p^2 figures of memory.
///   Non-homogeneous: O(p^4) and p^3.
/// - binomial: rank order, oblivious of sizes; O(p).
/// - adaptive: the same, but of two blocks the one that is cheaper to send does; O(p).
/// - optimal: the cheapest strongly ordered tree. Homogeneous: O(p^2) time where copying a block never takes longer
/// than
///   sending it, else O(p^3), and p^2 figures of memory (32 MB for p = 2000). Non-homogeneous: O(p^5) time.
/// - two_block: small and large blocks in a tree each, and one message between their roots (Lemma 2); not ordered.
/// - sorted: the cheapest ordered tree over several orders of the ranks by arrival and size (a heuristic: the best tree
///   that need not be ordered is NP-hard to find); homogeneous networks only.
/// Errors: what does not fit together, or is not supported, in words.
Result<RankTree> plan_tree(TreeKind kind, const TreeProblem& problem, const TreeOptions& options = {});

/// Completion time of any tree (Definition 2 of the paper), the local copy where it costs least, arrivals included.
double completion(const TreeProblem& problem, const RankTree& tree);

namespace trees {
// The programs behind plan_tree. `root`: -1 for any.

/// Merges of neighbouring ranges of ranks: `from` sends all it has to `to`.
struct Merge {
  Rank from, to;
};
/// The tree that a list of merges builds, each node's children in their order. The cost is left at 0.
RankTree tree_of(int ranks, Rank root, const std::vector<Merge>& merges);

/// A range of places and the tree that it has become.
struct Block {
  Rank root = -1;
  double time = 0, size = 0;
  double copy = 0;  ///< of the root's own block
  bool leaf = true;
};
/// Joins two neighbouring ranges as the binomial trees do (Proposition 1): the range with the given root receives; else
/// the right one, or, `adaptive`, the left one where that is complete earlier. `leftwards`: the right one sends.
Block join(const TreeProblem& problem, const Block& left, const Block& right, bool root_in_left, bool root_in_right,
           bool adaptive, bool& leftwards);

RankTree optimal_cubic(const TreeProblem& problem, Rank root, TreeForm form);
/// Exact where copying never costs more than sending: see optimal.cpp for the argument.
RankTree optimal_quadratic(const TreeProblem& problem, Rank root);
bool quadratic_is_exact(const TreeProblem& problem);
RankTree optimal_nonhomogeneous(const TreeProblem& problem, Rank root, bool paper);
RankTree binary(const TreeProblem& problem, Rank root);
RankTree binary_nonhomogeneous(const TreeProblem& problem, Rank root);
}  // namespace trees

}  // namespace latecomer::core

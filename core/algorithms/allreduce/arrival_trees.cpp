// SPDX-License-Identifier: BSD-3-Clause
// allreduce/arrival_trees. Two pipelined binary trees in the order of arrival, whose root is the latest rank.
// Steps: The contributions climb two trees of early ranks, whose leaves are late. The earliest rank collects the sums
// for the latest one. When that arrives, all others are added up. Finished segments descend two trees. Each rank has
// children in one tree only, and half of the vector takes each tree. One rank of each host speaks for it. A single
// segment takes a binomial tree.
// Cost: One rank late: about N beta + 2 log2 P (alpha + N/S beta) after it, for P ranks and N bytes in S segments.
// Balanced: twice that.
// Operands: order of arrival, so commutative operators only, and the result's rounding depends on the pattern.
// Buffers: 2 segments of scratch for each child of a tree but its first (in place: for each child).
// Source: Sanders, Speck, Träff 2009 (Parallel Computing 35), with the places in the order of arrival.
#include "core/algorithms/arrival_trees.hpp"

namespace latecomer::core::algorithms::allreduce {

Schedule arrival_trees(const Instance& instance, Rank me) {
  return tree_walk(instance, me, {.collects = true, .spreads = true});
}

}  // namespace latecomer::core::algorithms::allreduce

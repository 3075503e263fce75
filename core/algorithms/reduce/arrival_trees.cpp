// SPDX-License-Identifier: BSD-3-Clause
// reduce/arrival_trees. Two pipelined binary trees in the order of arrival.
// Steps: Contributions climb two trees from late ranks over early ones to the root. Each rank has children in one tree
// only, and half of the vector takes each tree. One rank of each host speaks for it. A single segment takes a binomial
// tree, in which late ranks are near the root.
// Cost: about N beta + 2 log2 P (alpha + N/S beta), for P ranks and N bytes in S segments; after a late rank, too.
// Operands: order of arrival, so commutative operators only, and the result's rounding depends on the pattern.
// Buffers: 2 segments of scratch for each child of a tree, at the root for each but the first.
// Source: Sanders, Speck, Träff 2009 (Parallel Computing 35), with the places in the order of arrival.
#include "core/algorithms/arrival_trees.hpp"

namespace latecomer::core::algorithms::reduce {

Schedule arrival_trees(const Instance& instance, Rank me) { return tree_walk(instance, me, {.collects = true}); }

}  // namespace latecomer::core::algorithms::reduce

// SPDX-License-Identifier: BSD-3-Clause
// reduce/arrival_trees. Two pipelined binary trees in which late ranks are near the root.
// Steps: Contributions climb two trees. Each rank has children in one tree only, and half of the vector takes each
// tree. Late ranks are near the root. Between hosts one rank of each host takes part. A single segment takes a binomial
// tree. Cost: about N beta + 2 log2 P (alpha + N/S beta), for P ranks and N bytes in S segments. One rank late: about
// N beta + 2 (alpha + N/S beta) after it.
// Operands: order of arrival, so commutative operators only, and the result's rounding depends on the pattern.
// Buffers: 2 segments of scratch for each child, at most 8 segments with more than one segment.
// Source: Sanders, Speck, Träff 2009 (Parallel Computing 35), with the places in the order of arrival.
#include "core/algorithms/arrival_trees.hpp"

namespace latecomer::core::algorithms::reduce {

Schedule arrival_trees(const Instance& instance, Rank me) { return tree_walk(instance, me, {.collects = true}); }

}  // namespace latecomer::core::algorithms::reduce

// SPDX-License-Identifier: BSD-3-Clause
// bcast/arrival_trees. Two pipelined binary trees in the order of arrival.
// Steps: Half of the vector descends each of two trees from the root over early ranks to late ones. Each rank has
// children in one tree only. One rank of each host receives from other hosts. A single segment takes a binomial tree.
// Cost: about N beta + 2 log2 P (alpha + N/S beta), for P ranks and N bytes in S segments.
// Operands: none.
// Buffers: none.
// Source: Sanders, Speck, Träff 2009 (Parallel Computing 35), with the places in the order of arrival.
#include "core/algorithms/arrival_trees.hpp"

namespace latecomer::core::algorithms::bcast {

Schedule arrival_trees(const Instance& instance, Rank me) { return tree_walk(instance, me, {.spreads = true}); }

}  // namespace latecomer::core::algorithms::bcast

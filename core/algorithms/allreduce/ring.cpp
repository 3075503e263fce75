// SPDX-License-Identifier: BSD-3-Clause
// allreduce/ring. Steps: the vector is cut into P segments; in step t of 2P-2 rank p sends segment
// (p - t) mod P to p+1; the first P-1 steps reduce, the others override.
// Cost: 2 (P-1) alpha + 2 (P-1)/P N beta + (P-1)/P N gamma (N bytes). Optimal bandwidth when balanced.
// Buffers: in place 8 segments of scratch, otherwise none. Operands: rotated rank order, so commutative only.
// Source: Patarasuk, Yuan, JPDC 2009; paper 002 (Proficz, J Supercomput 2018), section 4.2.
#include "core/algorithms/pipeline.hpp"

namespace latecomer::core::algorithms::allreduce {

Schedule ring(const Instance& instance, Rank me) { return ring_walk(instance, me, {}, instance.rank_order); }

}  // namespace latecomer::core::algorithms::allreduce

// SPDX-License-Identifier: BSD-3-Clause
// allreduce/ring. Segments travel around a ring twice.
// Steps: The vector is cut into P segments. In step t of 2P-2, rank p sends segment (p - t) mod P to rank p+1. The
// first P-1 steps reduce; the others replace the receiver's segment by the result.
// Cost: 2 (P-1) alpha + 2 (P-1)/P N beta + (P-1)/P N gamma for P ranks and N bytes. Optimal bandwidth for balanced
// arrivals.
// Operands: rotated rank order, so commutative operators only.
// Buffers: in-place calls 8 segments of scratch, others none.
// Source: Patarasuk, Yuan 2009 (JPDC 69); Proficz 2018 (J. Supercomputing 74), section 4.2.
#include "core/algorithms/pipeline.hpp"

namespace latecomer::core::algorithms::allreduce {

Schedule ring(const Instance& instance, Rank me) { return ring_walk(instance, me, {}, instance.rank_order); }

}  // namespace latecomer::core::algorithms::allreduce

// SPDX-License-Identifier: BSD-3-Clause
// allreduce/linear, the linear tree. Steps: S segments (default P) are reduced in a pipeline along ranks
// 0, 1, ..., P-1; a finished segment goes on around the ring from P-1 to 0, 1, ..., P-2 (with a port per link:
// back through the chain; see chain_walk). The unsorted linear tree of the paper's figure 6a.
// Cost: (S + 2P - 3) (alpha + N/S (beta + gamma)).
// Operands: rank order. Buffers: 8 segments of scratch in place or for non-commutative operators.
// Source: paper 002 (Proficz, J Supercomput 2018), section 4.1.
#include "core/algorithms/pipeline.hpp"

namespace latecomer::core::algorithms::allreduce {

Schedule linear(const Instance& instance, Rank me) { return chain_walk(instance, me, instance.rank_order); }

}  // namespace latecomer::core::algorithms::allreduce

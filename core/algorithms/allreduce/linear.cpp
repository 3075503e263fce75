// SPDX-License-Identifier: BSD-3-Clause
// allreduce/linear. The linear tree: a pipeline along the ranks.
// Steps: S segments (default P) are reduced in a pipeline along ranks 0, 1, ..., P-1. Finished segments continue around
// the ring from P-1 to 0, 1, ..., P-2. With one port per link they return through the chain (see chain_walk).
// Cost: (S + 2P - 3) (alpha + N/S (beta + gamma)) for P ranks and N bytes.
// Operands: rank order.
// Buffers: 8 segments of scratch for in-place calls and for non-commutative operators, otherwise none.
// Source: Proficz 2018 (J. Supercomputing 74), section 4.1 and figure 6a.
#include "core/algorithms/pipeline.hpp"

namespace latecomer::core::algorithms::allreduce {

Schedule linear(const Instance& instance, Rank me) { return chain_walk(instance, me, instance.rank_order); }

}  // namespace latecomer::core::algorithms::allreduce

// SPDX-License-Identifier: BSD-3-Clause
// allreduce/slt. The sorted linear tree: the latest rank is the last in the pipeline.
// Steps: The linear tree over the ranks sorted by arrival. All other contributions are reduced when the latest rank
// arrives. Finished segments continue around the ring, from the last position to the first.
// Cost: (S + 2P - 3) (alpha + N/S (beta + gamma)) for P ranks and N bytes in S segments. One rank late by D: about D
// plus S + P - 1 steps.
// Operands: order of arrival, so commutative operators only, and the result's rounding depends on the pattern.
// Buffers: in-place calls 8 segments of scratch, others none.
// Source: Proficz 2018 (J. Supercomputing 74), section 4.1. Only the way around the ring matches the paper's figures
// for balanced arrivals: in the model, the way back through the chain costs 20% more.
#include "core/algorithms/pipeline.hpp"

namespace latecomer::core::algorithms::allreduce {
Schedule slt(const Instance& instance, Rank me) {
  return chain_walk(instance, me, instance.shared([&] { return order_by_host(instance); }));
}

}  // namespace latecomer::core::algorithms::allreduce

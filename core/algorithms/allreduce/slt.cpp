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
#include <algorithm>

#include "core/algorithms/pipeline.hpp"

namespace latecomer::core::algorithms::allreduce {
namespace {

/// The order of arrival, but with the ranks of a host next to each other. Hosts follow by their last arrivals. The
/// vector then leaves each host at most twice.
std::vector<Rank> order_by_host(const Instance& in) {
  std::vector<int> last(static_cast<std::size_t>(in.hosts()));
  const auto host = [&](Rank r) { return static_cast<std::size_t>(in.host(r)); };
  for (std::size_t k = 0; k < in.order.size(); ++k) last[host(in.order[k])] = static_cast<int>(k);
  std::vector<Rank> out = in.order;
  std::stable_sort(out.begin(), out.end(), [&](Rank a, Rank b) { return last[host(a)] < last[host(b)]; });
  return out;
}

}  // namespace

Schedule slt(const Instance& instance, Rank me) {
  return chain_walk(instance, me, instance.shared([&] { return order_by_host(instance); }));
}

}  // namespace latecomer::core::algorithms::allreduce

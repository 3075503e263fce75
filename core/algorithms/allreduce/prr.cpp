// SPDX-License-Identifier: BSD-3-Clause
// allreduce/prr, pre-reduced ring. Steps: the ring over the ranks sorted by arrival, but segment q starts
// k_q positions earlier, at position q - k_q in step -k_q, so that early processes reduce before the late
// ones come; P-1 reduce and P-1 override steps as in the ring. k_q is the largest j <= q such that for
// every j' <= j the positions q-j' and q-j'+1 have arrived by a_last - j' tau, tau the time of one step.
// With a flat pattern all k are 0 and PRR is the ring.
// Cost: the ring's; up to P-1 of its 2P-2 steps lie before the last arrival. P (2P-2) messages.
// Operands: sorted by arrival, so commutative only and dependent on the pattern.
// Source: paper 002 (Proficz, J Supercomput 2018), section 4.2; k_q is the reconstruction of ALGORITHMS 1.
#include "core/algorithms/pipeline.hpp"

namespace latecomer::core::algorithms::allreduce {
namespace {

std::vector<int> head_starts(const Instance& in) {
  const int ranks = in.call.ranks;
  std::vector<int> k(static_cast<std::size_t>(ranks), 0);
  if (in.pattern.flat()) return k;
  const Nanoseconds tau = in.parameters.network.step_ns(largest_part(in.call.count, ranks) * in.call.element_bytes);
  const Nanoseconds last = in.pattern.last();
  const auto arrival = [&](int position) { return in.pattern.arrival(in.order[static_cast<std::size_t>(position)]); };
  for (int q = 1; q < ranks; ++q) {
    int j = 0;
    // Positions are sorted by arrival, so q-j+1 is the later of the two.
    while (j < q && arrival(q - (j + 1) + 1) <= last - (j + 1) * tau) ++j;
    k[static_cast<std::size_t>(q)] = j;
  }
  return k;
}

}  // namespace

Schedule prr(const Instance& instance, Rank me) {
  const auto& ahead = instance.shared([&] { return head_starts(instance); });
  return ring_walk(instance, me, ahead, instance.order);
}

}  // namespace latecomer::core::algorithms::allreduce

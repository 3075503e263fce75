// SPDX-License-Identifier: BSD-3-Clause
// allreduce/prr. The pre-reduced ring: early ranks reduce before late ranks arrive.
// Steps: The ring over the ranks sorted by arrival. Segment q starts k_q positions earlier, at position q - k_q in step
// -k_q. P-1 steps reduce and P-1 steps replace, as in the ring. Let tau be the time of one step. k_q is the largest
// j <= q such that for every j' <= j the positions q-j' and q-j'+1 have arrived by a_last - j' tau. For a flat pattern
// every k_q is 0, and PRR is the ring.
// Cost: 2 (P-1) alpha + 2 (P-1)/P N beta + (P-1)/P N gamma for P ranks and N bytes, as in the ring. Up to P-1 of the
// 2P-2 steps precede the last arrival. P (2P-2) messages.
// Operands: order of arrival, so commutative operators only, and the result's rounding depends on the pattern.
// Buffers: in-place calls 8 segments of scratch, others none.
// Source: Proficz 2018 (J. Supercomputing 74), section 4.2. The formula of k_q is reconstructed from the paper's
// figures and tables.
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
    // Positions are sorted by arrival, so position q-j'+1 is the later of the two.
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

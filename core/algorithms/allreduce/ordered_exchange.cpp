// SPDX-License-Identifier: BSD-3-Clause
// allreduce/ordered_exchange, late_exchange with one association under every pattern.
// Steps: those of late_exchange. Each owner adds the contributions in one binary tree over the ranks: it adds two
// neighbours as soon as it has both. After the last arrival log2 P additions of a segment remain.
// Cost: one late rank: about N beta + log2 P (alpha + N/S (beta + gamma)) after its arrival. Balanced: 2 (P-1)/P N beta
// + (P-1)/P N gamma and idle time. N: bytes of the vector, S: segments.
// Operands: in rank order, halves of 2^l ranks. The bits depend on P only, not on the pattern or the segments.
// Buffers: contributions that wait for their neighbours. They take N/2 of scratch if every rank is an owner, N if only
// half of the ranks are, and up to P/2 segments if S < P. At most 9 more segments.
// Source: this project; docs/results/late_exchange.md.
#include "core/algorithms/exchange/carry_out.hpp"

namespace latecomer::core::algorithms::allreduce {

Schedule ordered_exchange(const Instance& instance, Rank me) {
  return exchange::carry_out(instance, me, {.ordered = true});
}

}  // namespace latecomer::core::algorithms::allreduce

// SPDX-License-Identifier: BSD-3-Clause
// allreduce/ordered_exchange. Steps: those of late_exchange, but each owner adds contributions in one tree over the
// ranks, whoever comes when: early ones as far up as their neighbours are there, so that a late one takes log2 P
// additions of a segment and not P. For operators that are not commutative, and for the same bits under every pattern,
// in any number of segments. Left to no other algorithm, whose bits would be others. Cost: one rank late: about N beta
// + log2 P (alpha + N/S (beta + gamma)) after it; balanced: 2 (P-1)/P N beta + (P-1)/P N gamma and what is idle
// meanwhile. Operands: in rank order, halves of 2^l ranks, always the same. Buffers: contributions that wait for their
// neighbours, N/2 of scratch where all ranks are owners, N where half are (never fewer are); with fewer segments than
// ranks up to P/2 segments; and 9 segments more, at most. The schedule is computed from the pattern. Source: ALGORITHMS
// 6; docs/late_exchange.md.
#include "core/algorithms/exchange/choose.hpp"

namespace latecomer::core::algorithms::allreduce {
namespace {

std::vector<int> table_of(const Instance& given) {
  const exchange::Setting setting(given);
  exchange::Plan plan = exchange::plan_for(setting, -1, true);
  if (given.parameters.segments == 0) exchange::fit(setting, plan);
  return exchange::rows_for(std::move(plan.table), given.parameters.only);
}

}  // namespace

Schedule ordered_exchange(const Instance& instance, Rank me) {
  return exchange::carry_out(instance, me, table_of, {}, true);
}

}  // namespace latecomer::core::algorithms::allreduce

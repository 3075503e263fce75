// SPDX-License-Identifier: BSD-3-Clause
// reduce/late_exchange. Steps: ranks that come early, the root never, own the segments between them and take in
// everybody's contribution but the root's; a segment's sum goes to the root as soon as it is complete. Where the model
// knows better of another reduce for these arrivals, it is that one. Cost: about N beta + 2 (alpha + N/S beta) after
// the last arrival, whoever and how many are late. Operands: by arrival, so commutative only and dependent on the
// pattern. Buffers: N and 9 segments of scratch, at most N more or 2 segments, or the other reduce's. The schedule is
// computed from the pattern. Source: ALGORITHMS 6, for a reduce; docs/late_exchange.md.
#include <array>

#include "core/algorithms/exchange/choose.hpp"

namespace latecomer::core::algorithms::reduce {
namespace {

/// Instead of a plan, where the model prefers it.
constexpr std::array kOthers{"binomial", "rabenseifner", "radix_k", "ring", "clairvoyant"};

std::vector<int> table_of(const Instance& given) {
  const exchange::Setting setting(given);
  return exchange::fitted_or_other(setting, exchange::plan_for(setting, given.call.root), kOthers);
}

}  // namespace

Schedule late_exchange(const Instance& instance, Rank me) {
  return exchange::carry_out(instance, me, table_of, kOthers);
}

}  // namespace latecomer::core::algorithms::reduce

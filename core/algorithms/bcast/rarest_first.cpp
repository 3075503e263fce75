// SPDX-License-Identifier: BSD-3-Clause
// bcast/rarest_first. Steps: in slots of a segment's time; in each, every process that has any of the vector sends the
// segment that the fewest have, of those it has, to one that lacks it; who comes late is served when it comes. Where
// the model knows better of another broadcast for these arrivals, it is that one. Cost: about N beta + log2 P messages;
// a receiver late by more: N beta after it. Operands: none, no reduction. Buffers: no scratch, or the other
// broadcast's. The schedule is computed from the pattern. Source: ALGORITHMS 6, for a broadcast; docs/late_exchange.md.
#include <array>

#include "core/algorithms/exchange/choose.hpp"

namespace latecomer::core::algorithms::bcast {
namespace {

/// Instead of a plan, where the model prefers it.
constexpr std::array kOthers{"binomial", "scatter_ring", "arrival_linear", "arrival_binomial"};

std::vector<int> table_of(const Instance& given) {
  const exchange::Setting setting(given);
  const Instance& in = setting.instance();
  const Call& call = in.call;
  const bool chosen = in.parameters.segments > 0;
  exchange::Plan plan{{setting.problem(chosen ? in.parameters.segments
                                              : exchange::segments_for(call.count, call.element_bytes, call.ranks, 1,
                                                                       in.parameters.network)),
                       {}},
                      {}};
  plan.planned.problem.source = call.root;
  plan.table = exchange::table_for(setting, plan.planned);
  return exchange::fitted_or_other(setting, std::move(plan), kOthers);
}

}  // namespace

Schedule rarest_first(const Instance& instance, Rank me) {
  return exchange::carry_out(instance, me, table_of, kOthers);
}

}  // namespace latecomer::core::algorithms::bcast

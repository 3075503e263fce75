// SPDX-License-Identifier: BSD-3-Clause
// allreduce/late_exchange. Steps: ranks that come early own the segments between them and take in everybody's
// contribution; when the late ones come only their own is missing, which they send segment by segment to the owners; a
// final segment spreads at once, by every port that is free, the rarest first. Where that promises less than the best
// algorithm for balanced arrivals, it is that one. Cost: one rank late: about N beta and log2 P messages after it;
// balanced: the least of 2 (P-1)/P N beta + (P-1)/P N gamma and recursive doubling's. Operands: by arrival, so
// commutative only and dependent on the pattern. Buffers: 9 segments of scratch, the vector at most (2 segments at
// least), or the balanced algorithm's. The schedule is computed from the pattern. Source: ALGORITHMS 6;
// docs/late_exchange.md.
#include <algorithm>
#include <array>

#include "core/algorithms/clairvoyant/walk.hpp"
#include "core/algorithms/exchange/choose.hpp"
#include "core/model/simulate.hpp"

namespace latecomer::core::algorithms::allreduce {
namespace {

/// Instead of a plan, where the model prefers it.
constexpr std::array kOthers{"ring", "recursive_doubling", "rabenseifner", "clairvoyant"};

/// What ends first: the plan, or an algorithm for balanced arrivals: its place in kOthers, kOthers.size() for the plan.
std::size_t best_of(const exchange::Setting& setting, const exchange::Plan& plan) {
  const Instance& in = setting.instance();
  const Call& call = in.call;
  const std::int64_t ranks = call.ranks;
  // Nothing is much better than that.
  constexpr double kNearly = 1.02;
  Nanoseconds planned = exchange::expected_after_last(setting, plan.planned, plan.table);
  if (static_cast<double>(planned) <= kNearly * exchange::least_after_last(setting)) return kOthers.size();
  const auto modelled = [&](const char* name, std::int64_t messages, Nanoseconds otherwise, int in_segments = 0) {
    return messages > exchange::kModelled ? otherwise : exchange::modelled_after_last(in, name, in_segments);
  };
  const int rounds = clairvoyant::segments_for(call, in.parameters.network);
  const Nanoseconds ring_ends =
      2 * (ranks - 1) * in.parameters.network.step_ns(largest_part(call.count, call.ranks) * call.element_bytes);
  const Nanoseconds others[] = {modelled(kOthers[0], 2 * ranks * ranks, ring_ends), modelled(kOthers[1], 0, INT64_MAX),
                                modelled(kOthers[2], 0, INT64_MAX),
                                modelled(kOthers[3], 2 * ranks * rounds, INT64_MAX, rounds)};
  if (plan.table.says.kept && exchange::is_modelled(plan.planned.problem))
    planned = exchange::modelled_after_last(setting, plan.planned, plan.table);
  std::pair best{planned, kOthers.size()};
  for (std::size_t k = 0; k < kOthers.size(); ++k)
    if (others[k] < best.first) best = {others[k], k};
  return best.second;
}

std::vector<int> table_of(const Instance& given) {
  const exchange::Setting setting(given);
  exchange::Plan plan = exchange::plan_for(setting);
  std::size_t which = kOthers.size();
  if (given.parameters.segments == 0) exchange::fit(setting, plan), which = best_of(setting, plan);
  return exchange::table_with(which, kOthers.size(), std::move(plan), given);
}

}  // namespace

Schedule late_exchange(const Instance& instance, Rank me) {
  return exchange::carry_out(instance, me, table_of, kOthers);
}

}  // namespace latecomer::core::algorithms::allreduce

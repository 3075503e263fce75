// SPDX-License-Identifier: BSD-3-Clause
// Problems of calls, and rows of plans.
#include "core/algorithms/exchange/carry_out.hpp"

#include <algorithm>

#include "core/algorithms/clairvoyant/walk.hpp"
#include "core/algorithms/exchange/owners.hpp"
#include "core/algorithms/exchange/pace.hpp"

namespace latecomer::core::exchange {
namespace {

/// A table of rows begins with the number of segments.
constexpr std::size_t kHead = 1;

Network network_of(const Instance& instance) {
  const Network& network = instance.parameters.network;
  return network.beta_ns_per_byte <= 0 && network.alpha_ns <= 0 ? *network_preset("fdr") : network;
}

std::vector<int> table_of(const Problem& problem, Rank only) {
  std::vector<int> out{problem.segments};
  plan(problem, [&](const Transfer& t) {
    if (only >= 0 && t.src != only && t.dst != only) return;
    const auto slots = [](Nanoseconds n) { return static_cast<int>(std::min<Nanoseconds>(n, INT32_MAX)); };
    out.insert(out.end(), {slots(t.start), t.src, t.dst, t.segment, t.final, slots(t.landed), t.held_back});
  });
  return out;
}

}  // namespace

Problem problem_for(const Instance& instance, const Roles& roles) {
  const Call& call = instance.call;
  Problem out;
  out.network = network_of(instance);
  const int wanted = instance.parameters.segments > 0 ? instance.parameters.segments : segments_for(call, out.network);
  out.segments = static_cast<int>(std::min<Elements>({wanted, kChannels, call.count}));
  out.count = call.count, out.element_bytes = call.element_bytes;
  out.source = roles.source, out.sink = roles.sink, out.ordered = roles.ordered;
  // A plan exists for every forecast: one day late is as good as never.
  constexpr Nanoseconds kLatest = 86'400'000'000'000;
  out.arrivals.assign(static_cast<std::size_t>(call.ranks), 0);
  if (const Pattern& pattern = instance.pattern; !pattern.flat())
    for (Rank r = 0; r < call.ranks; ++r)
      out.arrivals[static_cast<std::size_t>(r)] = std::min(pattern.arrival(r) - pattern.first(), kLatest);
  if (roles.source < 0) out.owners = owners_for(out);
  return out;
}

Schedule carry_out(const Instance& instance, Rank me, const Roles& roles) {
  if (instance.call.ranks == 1 || instance.call.count == 0) return clairvoyant::follow(instance, me, {}, 1, false);
  const std::span<const int> table =
      instance.shared([&] { return table_of(problem_for(instance, roles), instance.parameters.only); });
  const Bytes segment = largest_part(instance.call.count, table[0]) * instance.call.element_bytes;
  return clairvoyant::follow(instance, me, table.subspan(kHead), table[0], true,
                             pace_of(segment, network_of(instance)).sends, roles.ordered);
}

}  // namespace latecomer::core::exchange

// SPDX-License-Identifier: BSD-3-Clause
// allreduce/late_exchange. Steps: ranks that come early own the segments between them and take in everybody's contribution;
// when the late ones come only their own is missing, which they send segment by segment to the owners; a final segment
// spreads at once, by every port that is free, the rarest first. Where that promises less than the best algorithm for
// balanced arrivals, it is that one. Cost: one rank late: about N beta and log2 P messages after it; balanced: the least of
// 2 (P-1)/P N beta + (P-1)/P N gamma and recursive doubling's. Operands: by arrival, so commutative only and dependent on the
// pattern. Buffers: 2 segments of scratch, or the balanced algorithm's. The schedule is computed from the pattern.
// Source: ALGORITHMS 6; docs/late_exchange.md.
#include <algorithm>

#include "core/algorithms/clairvoyant/walk.hpp"
#include "core/algorithms/exchange/choose.hpp"
#include "core/model/simulate.hpp"

namespace latecomer::core::algorithms::allreduce {

Schedule ring(const Instance& instance, Rank me);
Schedule recursive_doubling(const Instance& instance, Rank me);
Schedule rabenseifner(const Instance& instance, Rank me);

namespace {

/// What a table says first: which of these, and in how many segments.
enum Choice { kExchange, kRing, kDoubling, kHalving, kRounds };
constexpr int kHead = 2;

/// What ends first: the plan in about so many segments, which promises `planned` after the last arrival, or an algorithm for
/// balanced arrivals. `segments`: becomes how many are best.
Choice best_of(const Instance& in, int& segments, Nanoseconds planned) {
  const Call& call = in.call;
  const std::int64_t ranks = call.ranks;
  // What becomes of a plan tells more than what it promises, where looking does not take long.
  constexpr std::int64_t kMessages = 1 << 17;
  const auto modelled = [&](const char* name, std::int64_t messages, Nanoseconds otherwise, int in_segments = 0) {
    return messages > kMessages ? otherwise : exchange::modelled_after_last(in, name, in_segments);
  };
  std::pair<Nanoseconds, Choice> best{modelled("late_exchange", 2 * ranks * segments, planned, segments), kExchange};
  // Some numbers of segments fall into step better than others.
  for (const int other : {segments / 3, segments / 2, segments * 2 / 3, segments * 3 / 2, segments * 2, segments * 3}) {
    if (other < 1 || other > std::min<Elements>(kChannels, call.count) || ranks * other > kMessages / 8) continue;
    const Nanoseconds after = exchange::modelled_after_last(in, "late_exchange", other);
    if (after < best.first) best.first = after, segments = other;
  }
  // Nothing is much better than that.
  constexpr double kNearly = 1.02;
  if (static_cast<double>(best.first) <= kNearly * static_cast<double>(lower_bound(call, in.parameters.network, in.pattern).after_last)) return kExchange;
  const int rounds = clairvoyant::segments_for(call, in.parameters.network);
  const Nanoseconds ring_ends = 2 * (ranks - 1) * in.parameters.network.step_ns(largest_part(call.count, call.ranks) * call.element_bytes);
  best = std::min(best, {modelled("ring", 2 * ranks * ranks, ring_ends), kRing});
  best = std::min(best, {modelled("recursive_doubling", 0, INT64_MAX), kDoubling});
  best = std::min(best, {modelled("rabenseifner", 0, INT64_MAX), kHalving});
  best = std::min(best, {modelled("clairvoyant", 2 * ranks * rounds, INT64_MAX, rounds), kRounds});
  return best.second;
}

std::vector<int> table_of(const Instance& given) {
  const exchange::Setting setting(given);
  const Instance& in = setting.instance();
  const Call& call = in.call;
  const auto [problem, owners] = exchange::plan_for(setting);
  std::vector<int> out{kExchange, problem.segments};
  const Nanoseconds end = exchange::plan(problem, owners, exchange::rows_into(out, in.parameters.only));
  if (in.parameters.segments > 0) return out;
  int segments = problem.segments;
  const Choice which = best_of(in, segments, end - *std::max_element(setting.arrivals().begin(), setting.arrivals().end()));
  if (which == kExchange && segments == problem.segments) return out;
  if (which == kExchange) {
    Parameters parameters = in.parameters;
    parameters.segments = segments;
    return table_of(Instance(call, in.pattern, parameters));
  }
  out = {which, clairvoyant::segments_for(call, in.parameters.network)};
  if (which == kRounds) {
    const auto rows = clairvoyant::rows_of(in, out[1]);
    out.insert(out.end(), rows.begin(), rows.end());
  }
  return out;
}

}  // namespace

Schedule late_exchange(const Instance& instance, Rank me) {
  if (instance.call.ranks == 1 || instance.call.count == 0) return clairvoyant::follow(instance, me, {}, 1, false);
  const std::span<const int> table = instance.shared([&] { return table_of(instance); });
  switch (table[0]) {
    case kRing: return ring(instance.beside(), me);
    case kDoubling: return recursive_doubling(instance.beside(), me);
    case kHalving: return rabenseifner(instance.beside(), me);
    default: return clairvoyant::follow(instance, me, table.subspan(kHead), table[1], table[0] == kExchange);
  }
}

}  // namespace latecomer::core::algorithms::allreduce

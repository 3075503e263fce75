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
#include "core/algorithms/exchange/plan.hpp"
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
  const Network& network = in.parameters.network;
  // What becomes of a plan tells more than what it promises, where looking does not take long.
  constexpr std::int64_t kMessages = 1 << 17;
  const auto simulated = [&](const char* name, std::int64_t messages, Nanoseconds otherwise, int in_segments = 0) {
    if (messages > kMessages) return otherwise;
    Parameters parameters = in.parameters;
    parameters.segments = in_segments;
    const auto out = simulate(*find_algorithm(Collective::allreduce, name), Instance(call, in.pattern, parameters), network, in.pattern);
    return out ? out->after_last : otherwise;
  };
  const std::int64_t ranks = call.ranks;
  const int rounds = clairvoyant::segments_for(call, network);
  std::pair<Nanoseconds, Choice> best{simulated("late_exchange", 2 * ranks * segments, planned, segments), kExchange};
  // Some numbers of segments fall into step better than others.
  for (const int other : {segments / 3, segments / 2, segments * 2 / 3, segments * 3 / 2, segments * 2, segments * 3}) {
    if (other < 1 || other > std::min<Elements>(kChannels, call.count) || ranks * other > kMessages / 8) continue;
    const Nanoseconds after = simulated("late_exchange", 2 * ranks * other, INT64_MAX, other);
    if (after < best.first) best.first = after, segments = other;
  }
  // Nothing is much better than that.
  constexpr double kNearly = 1.02;
  if (static_cast<double>(best.first) <= kNearly * static_cast<double>(lower_bound(call, network, in.pattern).after_last)) return kExchange;
  best = std::min(best, {simulated("ring", 2 * ranks * ranks, 2 * (ranks - 1) * network.step_ns(largest_part(call.count, call.ranks) * call.element_bytes)), kRing});
  best = std::min(best, {simulated("recursive_doubling", 0, INT64_MAX), kDoubling});
  best = std::min(best, {simulated("rabenseifner", 0, INT64_MAX), kHalving});
  best = std::min(best, {simulated("clairvoyant", 2 * ranks * rounds, INT64_MAX, rounds), kRounds});
  return best.second;
}

std::vector<int> table_of(const Instance& given) {
  Instance in = given;
  const Call& call = in.call;
  Network& network = in.parameters.network;
  // Without any figure a plan needs some notion of what takes how long: a fast network of these years.
  if (network.beta_ns_per_byte <= 0 && network.alpha_ns <= 0) network = *network_preset("fdr");
  exchange::Problem problem;
  std::vector<Nanoseconds> arrivals(static_cast<std::size_t>(call.ranks), 0);
  // Whatever a forecast says, there is a plan: a day late is as good as for ever.
  constexpr Nanoseconds kLatest = 86'400'000'000'000;
  if (!in.pattern.flat())
    for (Rank r = 0; r < call.ranks; ++r) arrivals[static_cast<std::size_t>(r)] = std::min(in.pattern.arrival(r) - in.pattern.first(), kLatest);
  problem.arrivals = arrivals, problem.network = network;
  const bool chosen = in.parameters.segments > 0;
  const auto shape = [&](int owners, int most) {
    const int wanted = chosen ? in.parameters.segments : exchange::segments_for(call.count, call.element_bytes, call.ranks, owners, network);
    problem.segments = static_cast<int>(std::min<Elements>({wanted, most, kChannels, call.count}));
    problem.segment_bytes = largest_part(call.count, problem.segments) * call.element_bytes;
  };
  // Which owners: fewer segments tell, where a plan takes long.
  constexpr int kCells = 1 << 17;
  Nanoseconds least = 0;
  std::vector<Rank> best;
  for (auto& owners : exchange::owner_candidates(arrivals, static_cast<Nanoseconds>(static_cast<double>(call.bytes()) * network.beta_ns_per_byte), network.step_ns(1))) {
    shape(static_cast<int>(owners.size()), chosen ? kChannels : std::max(16, kCells / call.ranks));
    const Nanoseconds end = exchange::plan(problem, owners, [](const exchange::Transfer&) {});
    if (best.empty() || end < least) least = end, best = std::move(owners);
  }
  shape(static_cast<int>(best.size()), kChannels);
  std::vector<int> out{kExchange, problem.segments};
  const auto slots = [](Nanoseconds t) { return static_cast<int>(std::min<Nanoseconds>(t, INT32_MAX)); };
  const Nanoseconds end = exchange::plan(problem, best, [&](const exchange::Transfer& t) { out.insert(out.end(), {slots(t.start), t.src, t.dst, t.segment, t.final, slots(t.landed)}); });
  if (chosen) return out;
  const Nanoseconds last = *std::max_element(arrivals.begin(), arrivals.end());
  int segments = problem.segments;
  const Choice which = best_of(in, segments, end - last);
  if (which == kExchange && segments == problem.segments) return out;
  if (which == kExchange) {
    Parameters parameters = in.parameters;
    parameters.segments = segments;
    return table_of(Instance(call, in.pattern, parameters));
  }
  out = {which, clairvoyant::segments_for(call, network)};
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
    case kRing: return ring(instance, me);
    case kDoubling: return recursive_doubling(instance, me);
    case kHalving: return rabenseifner(instance, me);
    default: return clairvoyant::follow(instance, me, table.subspan(kHead), table[1], table[0] == kExchange);
  }
}

}  // namespace latecomer::core::algorithms::allreduce

// SPDX-License-Identifier: BSD-3-Clause
// allreduce/late_exchange. Steps: ranks that come early own the segments between them and take in everybody's contribution;
// when the late ones come only their own is missing, which they send segment by segment to the owners; a final segment
// spreads at once, by every port that is free, the rarest first. Where that promises less than the best algorithm for
// balanced arrivals, it is that one. Cost: one rank late: about N beta and log2 P messages after it; balanced: the least of
// 2 (P-1)/P N beta + (P-1)/P N gamma and recursive doubling's. Operands: by arrival, so commutative only and dependent on the
// pattern. Buffers: 2 segments of scratch, or the balanced algorithm's. The schedule is computed from the pattern.
// Source: ALGORITHMS 6; docs/late_exchange.md.
#include <algorithm>
#include <array>

#include "core/algorithms/clairvoyant/walk.hpp"
#include "core/algorithms/exchange/choose.hpp"
#include "core/model/simulate.hpp"

namespace latecomer::core::algorithms::allreduce {
namespace {

/// Instead of a plan, where the model prefers it.
constexpr std::array kOthers{"ring", "recursive_doubling", "rabenseifner", "clairvoyant"};

/// What ends first: the plan in about so many segments, which promises `planned` after the last arrival, or an algorithm for
/// balanced arrivals: its place in kOthers, kOthers.size() for the plan. `segments`: becomes how many are best.
std::size_t best_of(const Instance& in, int& segments, Nanoseconds planned) {
  const Call& call = in.call;
  const std::int64_t ranks = call.ranks;
  // What becomes of a plan tells more than what it promises, where looking does not take long.
  constexpr std::int64_t kMessages = 1 << 18, kFewer = 1 << 18, kFew = 1 << 17;
  const auto modelled = [&](const char* name, std::int64_t messages, Nanoseconds otherwise, int in_segments = 0) {
    return messages > kMessages ? otherwise : exchange::modelled_after_last(in, name, in_segments);
  };
  const auto messages_of = [&](int in_segments) { return 2 * ranks * in_segments; };
  std::pair best{modelled("late_exchange", messages_of(segments), planned, segments), kOthers.size()};
  // Returns how many messages it cost.
  const auto look_at = [&](int other, std::int64_t most_messages) -> std::int64_t {
    if (other < 1 || other > std::min<Elements>(kChannels, call.count) || messages_of(other) > most_messages) return 0;
    const Nanoseconds after = exchange::modelled_after_last(in, "late_exchange", other);
    if (after < best.first) best.first = after, segments = other;
    return messages_of(other);
  };
  // Nothing is much better than the second of these; looking for what is better than the first is not worth its time.
  constexpr double kNear = 1.06, kNearly = 1.02;
  const auto within = [&, bound = static_cast<double>(lower_bound(call, in.parameters.network, in.pattern).after_last)](double factor) { return static_cast<double>(best.first) <= factor * bound; };
  if (!within(kNear)) {
    constexpr double kKept = 1.1;
    const auto kept = [&] { return static_cast<double>(best.first) <= kKept * static_cast<double>(planned); };
    // Some numbers of segments fall into step better than others, those of which each rank owns as many in particular.
    std::int64_t left = kept() ? kFew : kFewer;
    const int wanted = segments;
    for (const int other : {call.ranks, 2 * call.ranks, wanted * 3 / 2, wanted * 2 / 3, wanted * 9 / 8, wanted * 7 / 8, wanted * 5 / 4, wanted * 2, wanted / 2, wanted * 3, wanted / 3})
      if (other != wanted && other <= 3 * wanted && other >= wanted / 3) left -= look_at(other, left);
    // Where messages did not keep to the plan, those of another nearly as good may.
    const int fewer = exchange::segments_for(call.count, call.element_bytes, call.ranks, call.ranks, in.parameters.network, 0, static_cast<int>(kFewer / (2 * ranks)));
    for (const int other : {fewer, segments * 15 / 16, segments * 7 / 8, segments * 9 / 8, fewer * 15 / 16, fewer * 7 / 8})
      if (other != segments && !kept()) look_at(other, kFewer);
  }
  if (within(kNearly)) return best.second;
  const int rounds = clairvoyant::segments_for(call, in.parameters.network);
  const Nanoseconds ring_ends = 2 * (ranks - 1) * in.parameters.network.step_ns(largest_part(call.count, call.ranks) * call.element_bytes);
  const Nanoseconds others[] = {modelled(kOthers[0], 2 * ranks * ranks, ring_ends), modelled(kOthers[1], 0, INT64_MAX), modelled(kOthers[2], 0, INT64_MAX), modelled(kOthers[3], messages_of(rounds), INT64_MAX, rounds)};
  for (std::size_t k = 0; k < kOthers.size(); ++k)
    if (others[k] < best.first) best = {others[k], k};
  return best.second;
}

std::vector<int> table_of(const Instance& given) {
  const exchange::Setting setting(given);
  const Instance& in = setting.instance();
  const Call& call = in.call;
  const auto [problem, owners] = exchange::plan_for(setting);
  std::vector<int> out{static_cast<int>(kOthers.size()), problem.segments};
  const Nanoseconds end = exchange::plan(problem, owners, exchange::rows_into(out, in.parameters.only));
  if (in.parameters.segments > 0) return out;
  int segments = problem.segments;
  const std::size_t which = best_of(in, segments, end - setting.last());
  if (which < kOthers.size()) return {static_cast<int>(which), 0};
  if (segments == problem.segments) return out;
  Parameters parameters = in.parameters;
  parameters.segments = segments;
  return table_of(Instance(call, in.pattern, parameters));
}

}  // namespace

Schedule late_exchange(const Instance& instance, Rank me) { return exchange::carry_out(instance, me, table_of, kOthers); }

}  // namespace latecomer::core::algorithms::allreduce

// SPDX-License-Identifier: BSD-3-Clause
// Settings, rows, and asking the model.
#include "core/algorithms/exchange/choose.hpp"

#include <algorithm>

#include "core/algorithms/clairvoyant/walk.hpp"
#include "core/model/simulate.hpp"

namespace latecomer::core::exchange {

namespace {

Parameters with_network(Parameters parameters) {
  Network& network = parameters.network;
  if (network.beta_ns_per_byte <= 0 && network.alpha_ns <= 0) network = *network_preset("fdr");
  return parameters;
}

}  // namespace

Setting::Setting(const Instance& instance) : instance_(instance.call, instance.pattern, with_network(instance.parameters)), arrivals_(static_cast<std::size_t>(instance.call.ranks), 0) {
  // Whatever a forecast says, there is a plan: a day late is as good as for ever.
  constexpr Nanoseconds kLatest = 86'400'000'000'000;
  const Pattern& pattern = instance_.pattern;
  if (!pattern.flat())
    for (Rank r = 0; r < instance_.call.ranks; ++r) arrivals_[static_cast<std::size_t>(r)] = std::min(pattern.arrival(r) - pattern.first(), kLatest);
}

Problem Setting::problem(int segments) const {
  const Call& call = instance_.call;
  Problem out;
  out.arrivals = arrivals_, out.network = instance_.parameters.network;
  out.segments = static_cast<int>(std::min<Elements>({segments, kChannels, call.count}));
  out.count = call.count, out.element_bytes = call.element_bytes;
  return out;
}

Planned plan_for(const Setting& setting, Rank sink, bool ordered) {
  const Instance& in = setting.instance();
  const Call& call = in.call;
  const Network& network = in.parameters.network;
  const bool chosen = in.parameters.segments > 0;
  const auto problem_for = [&](std::size_t owners, int most) {
    const Collecting by = ordered ? Collecting{} : collecting(setting.problem(1), static_cast<int>(owners));
    const int wanted = chosen ? in.parameters.segments : segments_for(call.count, call.element_bytes, call.ranks, static_cast<int>(owners) / by.collectors, network, by.slots);
    Problem out = setting.problem(std::min(wanted, most));
    out.sink = sink, out.ordered = ordered;
    return out;
  };
  // Which owners: fewer segments tell, where a plan takes long.
  constexpr int kCells = 1 << 17;
  // All of them keep to their plan more easily than some.
  constexpr double kClearly = 0.97;
  double least = 0;
  std::vector<Rank> best;
  const auto vector_ns = static_cast<Nanoseconds>(static_cast<double>(call.bytes()) * network.beta_ns_per_byte);
  auto candidates = owner_candidates(setting.arrivals(), vector_ns, network.step_ns(1), sink);
  // What waits for its neighbours lies at owners: with fewer of them it could be many times the vector.
  if (ordered) std::erase_if(candidates, [&](const auto& owners) { return 2 * owners.size() < setting.arrivals().size(); });
  if (candidates.size() == 1) best = std::move(candidates.front()), candidates.clear();  // no choice
  for (auto& owners : candidates) {
    const auto after = static_cast<double>(plan(problem_for(owners.size(), chosen ? kChannels : std::max(16, kCells / call.ranks)), owners, [](const Transfer&) {}) - setting.last());
    if (best.empty() || after < kClearly * least) least = after, best = std::move(owners);
  }
  const std::size_t owners = best.size();
  return {problem_for(owners, kChannels), std::move(best)};
}

double least_after_last(const Setting& setting) {
  const Instance& in = setting.instance();
  const double ranks = in.call.ranks, vector_ns = static_cast<double>(in.call.bytes()) * in.parameters.network.beta_ns_per_byte;
  double unsent = 0;
  for (const Nanoseconds a : setting.arrivals()) unsent += std::max(0.0, vector_ns - static_cast<double>(setting.last() - a));
  return std::max(static_cast<double>(lower_bound(in.call, in.parameters.network, in.pattern).after_last), ((ranks - 2) * vector_ns + unsent) / ranks);
}

Nanoseconds fit_segments(const Setting& setting, const char* algorithm, int& segments, Nanoseconds planned) {
  const Instance& in = setting.instance();
  const Call& call = in.call;
  const std::int64_t ranks = call.ranks;
  const auto messages_of = [&](int in_segments) { return 2 * ranks * in_segments; };
  // What becomes of a plan tells more than what it promises.
  Nanoseconds least = messages_of(segments) > kModelled ? planned : modelled_after_last(in, algorithm, segments);
  // Looking for what is better than that is not worth its time.
  constexpr double kNear = 1.06;
  if (static_cast<double>(least) <= kNear * least_after_last(setting)) return least;
  // Returns how many messages it cost.
  const auto look_at = [&](int other, std::int64_t most_messages) -> std::int64_t {
    if (other < 1 || other > std::min<Elements>(kChannels, call.count) || messages_of(other) > most_messages) return 0;
    const Nanoseconds after = modelled_after_last(in, algorithm, other);
    if (after < least) least = after, segments = other;
    return messages_of(other);
  };
  constexpr double kKept = 1.1;
  constexpr std::int64_t kFew = kModelled / 4, kMore = kModelled / 2;
  const auto kept = [&] { return static_cast<double>(least) <= kKept * static_cast<double>(planned); };
  // Some numbers of segments fall into step better than others, those of which each rank owns as many in particular.
  std::int64_t left = kept() ? kFew : kMore;
  const int wanted = segments;
  for (const int other : {call.ranks, 2 * call.ranks, wanted * 3 / 2, wanted * 2 / 3, wanted * 9 / 8, wanted * 7 / 8, wanted * 5 / 4, wanted * 2, wanted / 2, wanted * 3, wanted / 3})
    if (other != wanted && other <= 3 * wanted && other >= wanted / 3) left -= look_at(other, left);
  // Where messages did not keep to the plan, those of another nearly as good may.
  const int fewer = segments_for(call.count, call.element_bytes, call.ranks, call.ranks, in.parameters.network, 0, static_cast<int>(kModelled / (2 * ranks)));
  for (const int other : {fewer, segments * 15 / 16, segments * 7 / 8, segments * 9 / 8, fewer * 15 / 16, fewer * 7 / 8})
    if (other != segments && !kept()) look_at(other, kModelled);
  return least;
}

std::size_t preferred(const Instance& instance, std::string_view own, int segments, std::span<const char* const> others) {
  std::size_t best = others.size();
  Nanoseconds least = modelled_after_last(instance, own, segments);
  for (std::size_t k = 0; k < others.size(); ++k)
    if (const Nanoseconds end = modelled_after_last(instance, others[k]); end < least) least = end, best = k;
  return best;
}

Schedule carry_out(const Instance& instance, Rank me, std::vector<int> (*table_of)(const Instance&), std::span<const char* const> others, bool ordered) {
  constexpr int kHead = 2;
  if (instance.call.ranks == 1 || instance.call.count == 0) return clairvoyant::follow(instance, me, {}, 1, false);
  const std::span<const int> table = instance.shared([&] { return table_of(instance); });
  const auto which = static_cast<std::size_t>(table[0]);
  if (which < others.size()) return find_algorithm(instance.call.op, others[which])->build(instance.beside(with_network(instance.parameters)), me);
  return clairvoyant::follow(instance, me, table.subspan(kHead), table[1], true, in_flight(Setting(instance).problem(table[1])), ordered);
}

Emit rows_into(std::vector<int>& rows, Rank only) {
  return [&rows, only](const Transfer& t) {
    if (only >= 0 && t.src != only && t.dst != only) return;
    const auto slots = [](Nanoseconds n) { return static_cast<int>(std::min<Nanoseconds>(n, INT32_MAX)); };
    rows.insert(rows.end(), {slots(t.start), t.src, t.dst, t.segment, t.final, slots(t.landed)});
  };
}

Nanoseconds modelled_after_last(const Instance& instance, std::string_view algorithm, int segments) {
  Parameters parameters = instance.parameters;
  parameters.segments = segments, parameters.only = -1;
  const auto out = simulate(*find_algorithm(instance.call.op, algorithm), Instance(instance.call, instance.pattern, parameters), parameters.network, instance.pattern);
  return out ? out->after_last : INT64_MAX;
}

}  // namespace latecomer::core::exchange

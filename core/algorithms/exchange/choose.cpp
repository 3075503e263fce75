// SPDX-License-Identifier: BSD-3-Clause
// Settings, rows, and asking the model.
#include "core/algorithms/exchange/choose.hpp"

#include <algorithm>
#include <set>

#include "core/algorithms/clairvoyant/walk.hpp"
#include "core/model/bounds.hpp"
#include "core/model/simulate.hpp"

namespace latecomer::core::exchange {

namespace {

/// Of a budget of messages to look at a plan takes all at most, or half, so that what takes longest is not all that is
/// looked at.
constexpr int kAll = 1, kHalf = 2;

/// Of a table: which algorithm, and in how many segments.
constexpr int kHead = 2;

Parameters with_network(Parameters parameters) {
  Network& network = parameters.network;
  if (network.beta_ns_per_byte <= 0 && network.alpha_ns <= 0) network = *network_preset("fdr");
  return parameters;
}

/// Of a reduce only the root may say in place: it is not to decide what all have to decide alike.
Call for_all(Call call) {
  call.in_place = false;
  return call;
}

Nanoseconds simulated_after_last(const Instance& instance, std::string_view algorithm) {
  const auto out =
      simulate(*find_algorithm(instance.call.op, algorithm), instance, instance.parameters.network, instance.pattern);
  return out ? out->after_last : INT64_MAX;
}

/// When the last of these comes.
Nanoseconds latest(const Setting& setting, std::span<const Rank> ranks) {
  Nanoseconds out = 0;
  for (const Rank r : ranks) out = std::max(out, setting.arrivals()[static_cast<std::size_t>(r)]);
  return out;
}

/// About the time after the last arrival with so many owners, of whom the last comes so much earlier: all contributions
/// to that one, or those of who owns nothing to any; then what is final.
double of_ports(Nanoseconds vector_ns, int ranks, int owners, Nanoseconds earlier) {
  const auto vector = static_cast<double>(vector_ns);
  const double each = vector / owners;
  return vector + std::max((ranks - 1) * each - static_cast<double>(earlier), (ranks - owners) * each);
}

}  // namespace

Setting::Setting(const Instance& instance)
    : instance_(for_all(instance.call), instance.pattern, with_network(instance.parameters)),
      arrivals_(static_cast<std::size_t>(instance.call.ranks), 0) {
  // Whatever a forecast says, there is a plan: a day late is as good as for ever.
  constexpr Nanoseconds kLatest = 86'400'000'000'000;
  const Pattern& pattern = instance_.pattern;
  if (pattern.flat()) return;
  const Nanoseconds zero = pattern.first();
  for (Rank r = 0; r < instance_.call.ranks; ++r)
    arrivals_[static_cast<std::size_t>(r)] = std::min(pattern.arrival(r) - zero, kLatest);
}

Problem Setting::problem(int segments) const {
  const Call& call = instance_.call;
  Problem out;
  out.arrivals = arrivals_, out.network = instance_.parameters.network;
  out.segments = static_cast<int>(std::min<Elements>({segments, kChannels, call.count}));
  out.count = call.count, out.element_bytes = call.element_bytes;
  return out;
}

Table table_of(const Planned& planned, Rank only, Nanoseconds until) {
  Table out{{kThePlan, planned.problem.segments}, {}};
  out.says = plan(
      planned.problem, planned.owners,
      [&](const Transfer& t) {
        if (only >= 0 && t.src != only && t.dst != only) return;
        const auto slots = [](Nanoseconds n) { return static_cast<int>(std::min<Nanoseconds>(n, INT32_MAX)); };
        out.rows.insert(out.rows.end(),
                        {slots(t.start), t.src, t.dst, t.segment, t.final, slots(t.landed), t.held_back});
      },
      until);
  return out;
}

Table table_for(const Setting& setting, const Planned& planned, Nanoseconds until) {
  return table_of(planned, is_modelled(planned.problem) ? -1 : setting.instance().parameters.only, until);
}

std::vector<int> rows_for(Table table, Rank only) {
  if (only < 0) return std::move(table.rows);
  std::vector<int> out(table.rows.begin(), table.rows.begin() + kHead);
  for (auto row = table.rows.begin() + kHead; row != table.rows.end(); row += clairvoyant::kColumns)
    if (row[clairvoyant::kSrc] == only || row[clairvoyant::kDst] == only)
      out.insert(out.end(), row, row + clairvoyant::kColumns);
  return out;
}

Nanoseconds modelled_after_last(const Instance& instance, std::string_view algorithm, int segments) {
  Parameters parameters = instance.parameters;
  parameters.segments = segments, parameters.only = -1;
  return simulated_after_last(Instance(instance.call, instance.pattern, parameters), algorithm);
}

Nanoseconds modelled_after_last(const Setting& setting, const Planned& planned, const Table& table) {
  const Instance& in = setting.instance();
  const Instance everybody(in.call, in.pattern, in.parameters);
  everybody.shared([&] { return table.rows; });
  return simulated_after_last(everybody, planned.problem.source >= 0 ? "rarest_first"
                                         : planned.problem.ordered   ? "ordered_exchange"
                                                                     : "late_exchange");
}

Nanoseconds expected_after_last(const Setting& setting, const Planned& planned, const Table& table) {
  return table.says.kept || !is_modelled(planned.problem) ? table.says.end - setting.last()
                                                          : modelled_after_last(setting, planned, table);
}

double least_after_last(const Setting& setting) {
  const Instance& in = setting.instance();
  return static_cast<double>(core::least_after_last(in.call, in.parameters.network,
                                                    Pattern({setting.arrivals().begin(), setting.arrivals().end()})));
}

Plan plan_for(const Setting& setting, Rank sink, bool ordered) {
  const Instance& in = setting.instance();
  const Call& call = in.call;
  const Network& network = in.parameters.network;
  const bool chosen = in.parameters.segments > 0;
  const auto problem_for = [&](std::span<const Rank> owners) {
    Problem out = setting.problem(kChannels);
    out.sink = sink, out.ordered = ordered;
    const Collecting by = collecting(out, owners);
    out.segments =
        setting
            .problem(chosen ? in.parameters.segments
                            : segments_for(call.count, call.element_bytes, call.ranks,
                                           static_cast<int>(owners.size()) / by.collectors, network, by.slots))
            .segments;
    return out;
  };
  // Which owners: fewer segments tell, where a plan takes long, but not so few that most own nothing.
  constexpr int kCells = 1 << 17, kFew = 2;
  // Many of them, where it makes hardly a difference: they have the least to take in each. But those who come late had
  // better be none; of few segments they may just have got none.
  constexpr double kClearly = 0.995, kHardly = 1.005, kNearlyAll = 0.9;
  // Messages of plans that are compared; those who come latest are left out first.
  std::int64_t left = 32 * kModelled;
  double least = 0;
  std::vector<Rank> best;
  Table made;  // of the best, if that is the plan
  const Nanoseconds vector_ns = setting.problem(1).vector_ns();
  auto candidates = owner_candidates(setting.arrivals(), vector_ns, network.step_ns(1), sink);
  // What waits for its neighbours lies at owners: with fewer of them it could be many times the vector.
  if (ordered)
    std::erase_if(candidates, [&](const auto& owners) { return 2 * owners.size() < setting.arrivals().size(); });
  if (candidates.size() == 1) best = std::move(candidates.front()), candidates.clear();  // no choice
  for (auto& owners : candidates) {
    Planned candidate{problem_for(owners), owners};
    int& segments = candidate.problem.segments;
    const int wanted = segments;
    // With several collectors for each segment only as many segments as there will be tell.
    const bool several = collecting(candidate.problem, owners).collectors > 1;
    if (!chosen && !several) segments = std::min(wanted, std::max(16, kCells / call.ranks));
    const bool tells = several || segments >= static_cast<int>(owners.size()) || kFew * segments >= wanted;
    const Nanoseconds earlier = setting.last() - latest(setting, owners);
    if ((left -= tells ? candidate.problem.messages() : 0) < 0 && !best.empty()) break;
    Table its;
    double after = of_ports(vector_ns, call.ranks, static_cast<int>(owners.size()), earlier);
    if (tells) {
      its = table_for(setting, candidate,
                      best.empty() ? kForever : setting.last() + static_cast<Nanoseconds>(kHardly * least));
      after = static_cast<double>(expected_after_last(setting, candidate, its));
    }
    const bool without_late =
        2 * earlier >= vector_ns && static_cast<double>(owners.size()) > kNearlyAll * static_cast<double>(best.size());
    if (!best.empty() && after >= (without_late ? kHardly : kClearly) * least) continue;
    least = after, best = std::move(owners);
    made = tells && segments == wanted ? std::move(its) : Table{};
  }
  Plan out{{problem_for(best), std::move(best)}, std::move(made)};
  if (out.table.rows.empty()) out.table = table_for(setting, out.planned);
  return out;
}

void fit(const Setting& setting, Plan& plan) {
  Planned& planned = plan.planned;
  Table& table = plan.table;
  const Call& call = setting.instance().call;
  const Network& network = planned.problem.network;
  Nanoseconds least = expected_after_last(setting, planned, table);
  // Looking for what is better than that is not worth its time, which is more for many messages.
  const std::int64_t one = planned.problem.messages();
  const double near = one > 2 * kModelled ? 1.1 : 1.06;
  const double bound = least_after_last(setting);
  if (static_cast<double>(least) <= near * bound) return;
  // Messages to look at, for each way of looking; and for what is looked at once. Where a plan takes long, a few times
  // that, and some seconds at most.
  constexpr std::int64_t kTimes = 4, kFew = 2, kLong = 6 * kModelled, kLongest = 8 * kModelled;
  const std::int64_t some = std::min({kTimes * one, std::max(kFew * one, kLong), kLongest});
  std::int64_t left = std::max(kModelled, some), others = std::max(4 * kModelled, some),
               ties = std::max(2 * kModelled, one > kModelled && one <= 2 * kModelled ? 2 * some : some);
  const std::int64_t once_most = std::max(4 * kModelled, some);
  // The time, or 0 where there is no looking; or about kForever, where it is clearly worse.
  constexpr double kWorse = 1.15;
  const auto look = [&](Planned other, std::int64_t& budget, int part = kHalf) -> Nanoseconds {
    if (part * other.problem.messages() > budget) return 0;
    Table its =
        table_for(setting, other, setting.last() + static_cast<Nanoseconds>(kWorse * static_cast<double>(least)));
    // Where ranks come one by one there are many moments; each takes as long as some messages.
    constexpr int kMoment = 3;
    budget -= other.problem.messages() + kMoment * its.says.moments;
    const Nanoseconds after = expected_after_last(setting, other, its);
    if (after < least) least = after, planned = std::move(other), table = std::move(its);
    return after;
  };
  const auto with = [&](std::int64_t segments) {
    Problem out = planned.problem;
    out.segments = setting.problem(static_cast<int>(std::clamp<std::int64_t>(segments, 1, kChannels))).segments;
    return out;
  };
  const int wanted = planned.problem.segments;
  std::set<int> seen{wanted};
  const auto look_at = [&](std::int64_t segments, std::int64_t& budget) -> Nanoseconds {
    const Problem other = with(segments);
    const int part = 2 * other.segments > wanted ? kHalf : kAll;
    if (part * other.messages() > budget || !seen.insert(other.segments).second) return 0;
    return look({other, planned.owners}, budget, part);
  };
  // Eager messages to a rank that is still to come lie there when it does, which nothing else makes up for; the fewer
  // they are the sooner it has them.
  if (network.eager_bytes > 0) {
    std::int64_t once = 3 * once_most;
    look_at((call.bytes() + network.eager_bytes - 1) / network.eager_bytes, once);
  }
  const Collecting by = collecting(planned.problem, planned.owners);
  for (const int other :
       segments_worth_trying(call.count, call.element_bytes, call.ranks,
                             std::max(1, static_cast<int>(planned.owners.size()) / by.collectors), network, by.slots))
    look_at(other, left);
  // Some numbers of segments fit better than others, those of which each rank owns as many in particular.
  for (const int other : {call.ranks, 2 * call.ranks})
    if (other <= 3 * wanted && other >= wanted / 3) look_at(other, left);
  // More of them and fewer, until that is clearly worse; where a plan takes long, far fewer first, which takes the
  // least.
  constexpr double kParts[][2] = {{33. / 32, 31. / 32}, {9. / 8, 7. / 8}, {5. / 4, 3. / 4},
                                  {3. / 2, 2. / 3},     {2, 1. / 2},      {3, 1. / 3}};
  if (one > kModelled) {
    for (int s = wanted / 2; s > 1; s /= 2)
      if (look_at(s, left); planned.problem.segments != s) break;
  } else {
    bool worse[2] = {false, false};
    for (const auto& parts : kParts)
      for (const int i : {0, 1})
        if (!worse[i])
          worse[i] = static_cast<double>(look_at(static_cast<std::int64_t>(wanted * parts[i]), left)) >
                     kWorse * static_cast<double>(least);
  }
  if (planned.problem.sink < 0 && !planned.problem.ordered && static_cast<double>(least) > near * bound)
    if (const auto owners =
            owners_by_time(setting.arrivals(), planned.problem.vector_ns(), static_cast<Nanoseconds>(bound));
        !owners.empty()) {
      std::int64_t once = once_most;
      // Of what a plan in many segments takes only some can be looked at.
      const int best = planned.problem.segments;
      for (const int other :
           std::set<int>{best / 2, best * 5 / 8, best * 3 / 4, best, wanted / 2, wanted * 3 / 4, wanted})
        look({with(other), owners}, once, kAll);
      if (planned.owners == owners) seen = {planned.problem.segments};
    }
  // Other numbers of collectors, of whom each takes in several contributions: of so many segments that each collects
  // for as many.
  constexpr int kLeast = 3, kRanks = 8;
  const auto owners = static_cast<int>(std::min(planned.owners.size(), setting.arrivals().size()));
  const int collectors = collecting(planned.problem, planned.owners).collectors;
  std::set<int> tried{collectors};
  for (const int other : {collectors * 2 / 3, collectors / 2, collectors / 3, collectors * 3 / 2, 1, 2, 3, 4, 6, 8}) {
    if (owners == 0 || other < 1 || kRanks * other > call.ranks || !tried.insert(other).second) continue;
    const int now = planned.problem.segments, each = std::max(1, (now * other + owners / 2) / owners);
    for (const int segments : std::set<int>{now, wanted, std::max(1, owners * each / other)}) {
      Planned with_others{with(segments), planned.owners};
      with_others.problem.collectors = other;
      if (const Collecting then = collecting(with_others.problem, planned.owners);
          then.collectors == other && then.idle() >= kLeast * other)
        look(std::move(with_others), others);
    }
  }
  // Ties may cost a slot, which in few segments is some percent: numbers nearby, and others to begin with.
  constexpr int kFar[] = {8, 16}, kNearby = 64, kSteps = 5, kTurns = 8;
  for (int round = 0; round < 2; ++round) {
    for (const int part : kFar)
      for (const int sign : {1, -1})
        look_at(planned.problem.segments + sign * std::max(1, planned.problem.segments / part), ties);
    for (int step = 1; step <= kSteps; ++step)
      for (const int sign : {1, -1})
        look_at(planned.problem.segments + sign * step * std::max(1, planned.problem.segments / kNearby), ties);
  }
  // Ways of a little more than whole slots.
  constexpr double kLater = 0.4;
  if (network.overhead_ns > 0)
    for (const int more : {0, 1, -1, 2, -2, 4, -4}) {
      Planned other{with(planned.problem.segments + more), planned.owners};
      other.problem.late = kLater;
      look(std::move(other), ties);
    }
  for (int turn = 1; turn<kTurns&& static_cast<double>(least)> near * bound; ++turn)
    for (const int more : {0, 1, -1}) {
      Planned other{with(planned.problem.segments + more), planned.owners};
      other.problem.turn = turn;
      look(std::move(other), ties);
    }
}

std::size_t preferred(const Instance& instance, Nanoseconds least, std::span<const char* const> others) {
  std::size_t best = others.size();
  for (std::size_t k = 0; k < others.size(); ++k)
    if (const Nanoseconds end = modelled_after_last(instance, others[k]); end < least) least = end, best = k;
  return best;
}

std::vector<int> table_with(std::size_t which, std::size_t others, Plan plan, const Instance& instance) {
  return which < others ? std::vector<int>{static_cast<int>(which), 0}
                        : rows_for(std::move(plan.table), instance.parameters.only);
}

std::vector<int> fitted_or_other(const Setting& setting, Plan plan, std::span<const char* const> others) {
  const Instance& in = setting.instance();
  std::size_t which = others.size();
  if (in.parameters.segments == 0)
    fit(setting, plan), which = preferred(in, expected_after_last(setting, plan.planned, plan.table), others);
  return table_with(which, others.size(), std::move(plan), in);
}

Schedule carry_out(const Instance& instance, Rank me, std::vector<int> (*table_of)(const Instance&),
                   std::span<const char* const> others, bool ordered) {
  if (instance.call.ranks == 1 || instance.call.count == 0) return clairvoyant::follow(instance, me, {}, 1, false);
  const std::span<const int> table = instance.shared([&] { return table_of(instance); });
  const auto which = static_cast<std::size_t>(table[0]);
  if (which < others.size())
    return find_algorithm(instance.call.op, others[which])
        ->build(instance.beside(with_network(instance.parameters)), me);
  return clairvoyant::follow(instance, me, table.subspan(kHead), table[1], true,
                             in_flight(Setting(instance).problem(table[1])), ordered);
}

}  // namespace latecomer::core::exchange

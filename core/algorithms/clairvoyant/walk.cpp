// SPDX-License-Identifier: BSD-3-Clause
// One rank's part of a plan, as operations. Rounds order the operations in lockstep only. Otherwise the state of each
// segment on the rank gives the order.
#include "core/algorithms/clairvoyant/walk.hpp"

#include <algorithm>

#include "core/algorithms/clairvoyant/planner.hpp"
#include "core/algorithms/pipeline.hpp"
#include "core/algorithms/segments.hpp"
#include "core/base/logarithm.hpp"

namespace latecomer::core::clairvoyant {
namespace {

/// The rows of Clairvoyant's plan for an instance.
std::vector<int> rows_of(const Instance& in, int segments) {
  const int ranks = in.call.ranks;
  std::vector<Nanoseconds> arrivals(static_cast<std::size_t>(ranks), 0);
  const Nanoseconds zero = in.pattern.flat() ? 0 : in.pattern.first();
  // Whatever a forecast says, there is a plan: a day late is as good as for ever. Both limits are derived: with a round
  // of 100 s, the planner's own limit on rounds holds up to 10 million ranks and segments. Larger values count as
  // these.
  constexpr Nanoseconds kLatest = 86'400'000'000'000, kLongestRound = 100'000'000'000;
  for (Rank r = 0; r < ranks; ++r)
    arrivals[static_cast<std::size_t>(r)] = std::min(in.pattern.arrival(r) - zero, kLatest);
  Problem problem;
  problem.segments = segments;
  problem.root = in.call.root;
  problem.arrivals = arrivals;
  problem.round_ns = std::clamp<Nanoseconds>(
      in.parameters.network.step_ns(largest_part(in.call.count, segments) * in.call.element_bytes), 1, kLongestRound);
  std::vector<int> out;
  const auto add = [&](const Message& m, bool finished) {
    if (in.parameters.only >= 0 && m.src != in.parameters.only && m.dst != in.parameters.only) return;
    out.insert(out.end(), {static_cast<int>(std::min<std::int64_t>(m.round, INT32_MAX)), m.src, m.dst, m.segment,
                           finished ? kFinished : kShare});
  };
  if (reduces_to_all(in.call.op)) plan_everywhere(problem, [&](const PairExchange& m) { add(m, m.finished); });
  else
    plan(problem, [&](std::span<const Message> round) {
      for (const Message& m : round) add(m, false);
    });
  return out;
}

}  // namespace

int segments_for(const Call& call, const Network& network) {
  // Derived: filling the pipeline then takes at most log2 P / 512 of the time, 3% on 65,536 ranks. More segments save
  // less than that, and make the plan longer.
  constexpr int kMost = 512;
  const double filling = logarithm(std::max(2, call.ranks)) / logarithm(2);
  const auto most = static_cast<int>(std::clamp<Elements>(call.count, 1, kMost));
  return least_segments(most, 1, [&](int s) {
    return (filling + s) * static_cast<double>(network.step_ns(largest_part(call.count, s) * call.element_bytes));
  });
}

Schedule schedule_from_plan(const Instance& instance, Rank me) {
  // A channel is a segment: more of them than channels would need an order of their own.
  const int segments =
      std::min(kChannels, instance.parameters.segments > 0 ? instance.parameters.segments
                                                           : segments_for(instance.call, instance.parameters.network));
  return schedule_from_rows(
      instance, me,
      instance.call.ranks > 1 ? instance.shared([&] { return rows_of(instance, segments); }) : std::span<const int>(),
      segments);
}

Schedule schedule_from_rows(const Instance& instance, Rank me, std::span<const int> table, int segments) {
  const Call& call = instance.call;
  const bool everywhere = reduces_to_all(call.op), lockstep = !instance.parameters.overlap;
  const bool keeps = everywhere || me == call.root;  // the result is wanted here
  if (call.count == 0) co_return;
  if (call.ranks == 1) {
    if (!call.in_place) co_yield copy(output({0, call.count}), own(call, me, {0, call.count}));
    co_return;
  }
  const auto part = [&](int j) { return part_of(call.count, segments, j); };
  const Elements largest = largest_part(call.count, segments), slots_at = keeps ? 0 : call.count;

  /// The state of a segment on this rank, and the operations to wait for.
  enum class Share : char { own, sum, gone };
  struct Held {
    Share share;
    OpId ready = kNoOp;  // produced the sum
    OpId sent = kNoOp;   // the last operation that read the sum; a sum that is overwritten later was sent once only
  };
  std::vector<Held> held(static_cast<std::size_t>(segments), Held{own_in_output(call, me) ? Share::sum : Share::own});
  const auto sum_of = [&](Part p) { return keeps ? output(p) : Slice{Buffer::scratch, p.offset, p.count}; };
  // One message at a time and direction. More would leave in another order than planned, and a message in the wrong
  // queue delays all behind it. In the model two at a time are up to 60% slower, eight five times.
  OpId last_sent = kNoOp, last_received = kNoOp, last_ready = kNoOp;
  // While one partial result is added the next may land.
  LastOperations<2> landings;
  OpId sent_before = kNoOp, ready_before = kNoOp;  // in the rounds before this one
  int round = -1;
  for (std::size_t row = 0; row < table.size(); row += kColumns) {
    const Rank src = table[row + kSrc], dst = table[row + kDst];
    const int j = table[row + kSegment];
    const Part p = part(j);
    if ((src != me && dst != me) || p.count == 0) continue;
    if (table[row + kRound] != round) {
      round = table[row + kRound];
      sent_before = last_sent;
      ready_before = last_ready;
    }
    const auto paced = [&](const Operation& op) {
      return lockstep ? op.after(sent_before, ready_before).in_round(round) : op.in_round(round);
    };
    Held& h = held[static_cast<std::size_t>(j)];
    const bool both = table[row + kKind] == kBoth;
    for (int way = 0; way < (both ? 2 : 1); ++way) {
      if (both ? way == 0 : src == me) {
        // A rank never receives and sends the same segment in one round.
        const Slice what = h.share == Share::own ? own(call, me, p) : sum_of(p);
        if (what.buffer == Buffer::scratch) co_yield ScratchNeed{slots_at};
        last_sent = h.sent = co_yield paced(send(src == me ? dst : src, what, j % kChannels)).after(h.ready, last_sent);
        if (table[row + kKind] == kShare) h.share = Share::gone;
        continue;
      }
      const Rank from = src == me ? dst : src;
      if (h.share == Share::sum) {
        const Slice landing{Buffer::scratch, slots_at + landings.slot() * largest, p.count};
        co_yield ScratchNeed{slots_at + 2 * largest};
        last_received = co_yield paced(recv(from, landing, j % kChannels)).after(last_received, landings.oldest());
        if (both && src == me) {
          // The other adds this rank's share from the left, and the bits have to be the same.
          const OpId added = co_yield core::reduce(landing, sum_of(p)).after(last_received, h.ready).in_round(round);
          h.ready = co_yield copy(sum_of(p), landing).after(added, h.sent).in_round(round);
        } else {
          h.ready = co_yield core::reduce(sum_of(p), landing).after(last_received, h.ready, h.sent).in_round(round);
        }
        landings.push(h.ready);
      } else {
        co_yield ScratchNeed{slots_at};
        // The memory holds a sum that was sent away, or no sum yet.
        h.ready = last_received = co_yield paced(recv(from, sum_of(p), j % kChannels))
                                      .after(last_received, h.share == Share::own ? kNoOp : h.sent);
        if (h.share == Share::own)
          h.ready = co_yield core::reduce(sum_of(p), own(call, me, p)).after(last_received).in_round(round);
        h.share = Share::sum;
      }
      last_ready = h.ready;
    }
  }
}

}  // namespace latecomer::core::clairvoyant

// SPDX-License-Identifier: BSD-3-Clause
// One rank's part of a plan, as operations. Rounds order nothing but the lockstep: what a rank holds of a segment says
// what has to come before what.
#include "core/algorithms/clairvoyant/walk.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>

#include "core/algorithms/clairvoyant/planner.hpp"
#include "core/algorithms/ordered.hpp"
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
  problem.segments = segments, problem.root = in.call.root, problem.arrivals = arrivals;
  problem.round_ns = std::clamp<Nanoseconds>(
      in.parameters.network.step_ns(largest_part(in.call.count, segments) * in.call.element_bytes), 1, kLongestRound);
  std::vector<int> out;
  const auto add = [&](const Message& m, bool finished) {
    if (in.parameters.only >= 0 && m.src != in.parameters.only && m.dst != in.parameters.only) return;
    out.insert(out.end(),
               {static_cast<int>(std::min<std::int64_t>(m.round, INT32_MAX)), m.src, m.dst, m.segment, finished, 0, 0});
  };
  if (reduces_to_all(in.call.op)) plan_everywhere(problem, [&](const Exchange& m) { add(m, m.finished); });
  else
    plan(problem, [&](std::span<const Message> round) {
      for (const Message& m : round) add(m, false);
    });
  return out;
}

/// Where the rows of a rank begin, in the order of their rounds; `by_landing`: what it receives where it lands. With a
/// long way receives that wait would keep sends from being generated that are due before (kLookahead). Never after as
/// many sends as that: a message would wait for its receiver for ever, where the network is not what was planned for.
std::vector<std::size_t> rows_of_rank(std::span<const int> table, Rank me, bool by_landing) {
  // Derived: the last quarter of the lookahead is left for the other operations.
  constexpr int kMostSends = kLookahead * 3 / 4;
  struct Receive {
    std::size_t row;
    int lands;  // or what comes after it, if that is earlier: receives keep their order
    int sends;  // before it
  };
  std::vector<std::size_t> out;
  std::deque<Receive> receives;
  int sends = 0;
  const auto flush = [&](auto due) {
    for (; !receives.empty() && due(receives.front()); receives.pop_front()) out.push_back(receives.front().row);
  };
  for (std::size_t row = 0; row < table.size(); row += kColumns) {
    if (table[row + kDst] == me) {
      const int lands =
          table[row + (table[row + kHeldBack] ? kRound : kLands)];  // what it waits for is known in its round only
      for (auto before = receives.rbegin(); before != receives.rend() && before->lands > lands; ++before)
        before->lands = lands;
      receives.push_back({row, lands, sends});
    } else if (table[row + kSrc] == me) {
      flush([&](const Receive& r) {
        return !by_landing || r.lands <= table[row + kRound] || sends - r.sends >= kMostSends;
      });
      out.push_back(row), ++sends;
    }
  }
  flush([](const Receive&) { return true; });
  return out;
}

/// So many operations at a time: the next waits for the oldest.
struct Ring {
  explicit Ring(int size) : ids(static_cast<std::size_t>(size), kNoOp) {}
  std::vector<OpId> ids;
  std::size_t turn = 0;
  /// The oldest, to be replaced.
  OpId& next() {
    OpId& oldest = ids[turn];
    turn = (turn + 1) % ids.size();
    return oldest;
  }
};

/// Sums of ordered contributions that wait for their neighbours, and room for what comes.
class OrderedSums {
 public:
  /// What is in use by one of the last `lag` additions is not used again yet: who receives ahead would wait for them.
  explicit OrderedSums(int lag) : lag_(static_cast<std::size_t>(lag)) {}
  struct Sum {
    Slice where;
    OpId ready;     // since when it is there
    int room = -1;  // in the scratch; -1: in the output
  };
  /// What waits there, taken out, or nothing: then `sum` waits.
  std::optional<Sum> meet(int segment, const OrderedNode& node, const Sum& sum) {
    if (const auto other = waiting_.find({segment, node.sibling()}); other != waiting_.end())
      return waiting_.extract(other).mapped();
    waiting_.insert({{segment, node.id()}, sum});
    return {};
  }
  /// Room, and the operation that must be complete before it is written to.
  std::pair<int, OpId> take() {
    if (spare_.size() <= lag_) return {rooms_++, kNoOp};
    const auto out = spare_.front();
    spare_.pop_front();
    return out;
  }
  void give(int room, OpId last) {
    if (room >= 0) spare_.emplace_back(room, last);
  }
  int rooms() const { return rooms_; }

 private:
  std::map<std::pair<int, int>, Sum> waiting_;
  std::deque<std::pair<int, OpId>> spare_;
  int rooms_ = 0;
  std::size_t lag_;
};

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

Schedule walk(const Instance& instance, Rank me) {
  const Call& call = instance.call;
  // A channel is a segment: more of them than channels would need an order of their own.
  const int segments =
      std::min(kChannels, instance.parameters.segments > 0 ? instance.parameters.segments
                                                           : segments_for(call, instance.parameters.network));
  // One message at a time and direction. More would leave in another order than planned, and a message in the wrong
  // queue delays all behind it. In the model two at a time are up to 60% slower, eight five times.
  return follow(instance, me,
                call.ranks > 1 ? instance.shared([&] { return rows_of(instance, segments); }) : std::span<const int>(),
                segments, false);
}

Schedule follow(const Instance& instance, Rank me, std::span<const int> table, int segments, bool keeps_pace,
                int in_flight, bool ordered) {
  const Call& call = instance.call;
  const bool reduces = is_reduction(call.op), everywhere = !reduces || reduces_to_all(call.op),
             lockstep = !instance.parameters.overlap;
  const bool keeps = everywhere || me == call.root;  // the result is wanted here
  if (call.count == 0) co_return;
  if (call.ranks == 1) {
    if (!call.in_place && reduces) co_yield copy(output({0, call.count}), own(call, me, {0, call.count}));
    co_return;
  }
  const auto part = [&](int j) { return part_of(call.count, segments, j); };
  const Elements largest = largest_part(call.count, segments), slots_at = keeps ? 0 : call.count;

  /// What this rank holds of a segment, and the operations to wait for.
  enum class Share : char { own, sum, gone };
  struct Held {
    Share share;
    OpId ready = kNoOp;    // produced the sum
    OpId sent = kNoOp;     // the last that read it; what is overwritten later was sent once only
    bool counted = false;  // own contribution is among the ordered sums
  };
  const Share first = !reduces                  ? (me == call.root ? Share::sum : Share::gone)
                      : own_in_output(call, me) ? Share::sum
                                                : Share::own;
  std::vector<Held> held(static_cast<std::size_t>(segments), Held{first});
  const auto sum_of = [&](Part p) { return keeps ? output(p) : Slice{Buffer::scratch, p.offset, p.count}; };
  OpId last_sent = kNoOp, last_ready = kNoOp;
  const int posted = keeps_pace && !lockstep ? kPosted : 1;
  Ring sends(in_flight), receives(posted);
  OpId one_before =
      kNoOp;  // what the last send waited for: of those that are under way together the next is not to be the first
  // Received and not yet landed by the plan, in this order; the last that have, without an addition and with.
  struct Landing {
    int lands;
    OpId id;
    bool added;
  };
  std::deque<Landing> landing_at;
  struct {
    OpId moved = kNoOp, summed = kNoOp;
  } landed;
  OpId added = kNoOp;  // the last addition: one after the other, as they come
  // While one partial result is added the next may land.
  const int slots = posted > 1 ? rooms_for(segments) : 2;
  Ring slot_free(slots);
  OrderedSums sums(posted > 1 ? slots : 0);
  OpId sent_before = kNoOp, ready_before = kNoOp;  // in the rounds before this one
  int round = -1;
  for (const std::size_t row : rows_of_rank(table, me, keeps_pace && !lockstep)) {
    const Rank src = table[row + kSrc], dst = table[row + kDst];
    const int j = table[row + kSegment];
    const Part p = part(j);
    if (p.count == 0) continue;
    if (table[row + kRound] != round) round = table[row + kRound], sent_before = last_sent, ready_before = last_ready;
    // Whose sender has idled is held back by its receiver.
    const auto hold = [&](const Operation& op) {
      return table[row + kHeldBack] ? op.after(landed.moved, landed.summed) : op;
    };
    const auto paced = [&](const Operation& op) {
      return lockstep ? op.after(sent_before, ready_before).in_round(round) : op.in_round(round);
    };
    Held& h = held[static_cast<std::size_t>(j)];
    for (; !landing_at.empty() && landing_at.front().lands <= round; landing_at.pop_front())
      (landing_at.front().added ? landed.summed : landed.moved) = landing_at.front().id;
    if (src == me) {
      // Both operations of a round on one segment cannot be: what is received in it is not sent in it.
      const Slice what = h.share == Share::own ? own(call, me, p) : sum_of(p);
      if (what.buffer == Buffer::scratch) co_yield ScratchNeed{slots_at};
      OpId& sent = sends.next();
      last_sent = sent = h.sent =
          co_yield paced(send(dst, what, j)).after(h.ready, sent, landed.moved, landed.summed, one_before);
      if (in_flight > 1) one_before = h.ready;
      if (!table[row + kFinished]) h.share = Share::gone;
      continue;
    }
    OpId& received = receives.next();
    if (ordered && !table[row + kFinished]) {
      if (!h.counted) {
        OrderedSums::Sum mine{output(p), kNoOp};
        if (!own_in_output(call, me)) mine.ready = co_yield copy(output(p), own(call, me, p)).in_round(round);
        if (OrderedNode node(me, call.ranks); node.climb()) sums.meet(j, node, mine);
        h.share = Share::sum, h.counted = true;
      }
      const auto [room, free] = sums.take();
      OrderedSums::Sum sum{{Buffer::scratch, slots_at + room * largest, p.count}, kNoOp, room};
      co_yield ScratchNeed{slots_at + sums.rooms() * largest};
      sum.ready = received = co_yield hold(paced(recv(src, sum.where, j)).after(received, free));
      const OpId added_before = added;
      OrderedNode node(src, call.ranks);
      while (node.climb()) {
        const auto other = sums.meet(j, node, sum);
        if (!other) break;
        const auto &left = node.is_left() ? sum : *other, &right = node.is_left() ? *other : sum;
        added = co_yield core::reduce(right.where, left.where).after(left.ready, right.ready, added).in_round(round);
        sums.give(left.room, added);
        if (left.room < 0) h.sent = added;  // the output may be written again
        sum = {right.where, added, right.room};
        node.up();
      }
      if (!node.climb()) {
        h.ready = sum.ready;
        if (sum.room >= 0)
          h.ready = co_yield copy(output(p), sum.where).after(sum.ready, h.sent).in_round(round),
          sums.give(sum.room, h.ready);
        sum.ready = h.ready;
      }
      last_ready = sum.ready;
      if (keeps_pace) landing_at.push_back({table[row + kLands], sum.ready, added != added_before});
      continue;
    }
    if (h.share == Share::sum) {
      const Slice landing{Buffer::scratch, slots_at + static_cast<Elements>(slot_free.turn) * largest, p.count};
      OpId& in_use = slot_free.next();
      co_yield ScratchNeed{slots_at + slots * largest};
      received = co_yield hold(paced(recv(src, landing, j)).after(received, in_use));
      in_use = h.ready = added = co_yield core::reduce(sum_of(p), landing)
                                     .after(received, h.ready, h.sent, keeps_pace ? added : kNoOp)
                                     .in_round(round);
    } else {
      co_yield ScratchNeed{slots_at};
      // Over what was sent away, or where nothing of worth lies yet.
      h.ready = received = co_yield hold(paced(recv(src, sum_of(p), j)).after(received, h.sent));
      if (h.share == Share::own)
        h.ready = added = co_yield core::reduce(sum_of(p), own(call, me, p))
                              .after(received, keeps_pace ? added : kNoOp)
                              .in_round(round);
      h.share = Share::sum;
    }
    last_ready = h.ready;
    if (keeps_pace) landing_at.push_back({table[row + kLands], h.ready, !table[row + kFinished]});
  }
}

}  // namespace latecomer::core::clairvoyant

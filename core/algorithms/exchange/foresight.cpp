// SPDX-License-Identifier: BSD-3-Clause
// The course of messages, one rank's processor and ports at a time.
#include "core/algorithms/exchange/foresight.hpp"

namespace latecomer::core::exchange {

namespace {

/// As the model rounds it.

template <typename List>
auto& by_turn(List& list, std::int64_t i) {
  return list[static_cast<std::size_t>(i) % list.size()];
}

}  // namespace

Foresight::Foresight(const Problem& problem, const Grid& grid, int sends)
    : problem_(problem),
      grid_(grid),
      sends_(sends),
      overhead_(rounded_up(problem.network.overhead_ns)),
      adding_(rounded_up(problem.network.gamma_ns_per_byte * static_cast<double>(problem.segment_bytes()))),
      courses_(problem.arrivals.size()) {
  const Bytes smallest = problem.segment_bytes() - problem.element_bytes;
  shortest_ = problem.network.port_ns(smallest) + rounded_up(problem.network.flight_ns(smallest));
  // The order of two messages that are nearer, in slots, is uncertain. Chosen: plans were kept from 0.03 on.
  constexpr double kApart = 0.03;
  // A rank that is more behind, in slots, leaves one out. Chosen, not measured.
  constexpr double kBehind = 0.5;
  apart_ = static_cast<Nanoseconds>(kApart * static_cast<double>(grid.slot));
  // Both sides of what waits for its receiver are known, and a rank posts its messages an overhead apart.
  if (overhead_ > 0)
    apart_ = std::min(apart_, problem.network.eager(problem.segment_bytes()) ? overhead_ * 9 / 10 : overhead_ / 2);
  behind_ = static_cast<Nanoseconds>(kBehind * static_cast<double>(grid.slot));
  late_ = static_cast<Nanoseconds>(kLate * static_cast<double>(grid.slot));
  for (std::size_t r = 0; r < courses_.size(); ++r) {
    Course& c = courses_[r];
    c.moved = Moment{problem.arrivals[r], static_cast<Rank>(r)}, c.processor = c.taken_in = problem.arrivals[r];
    c.received.fill(problem.arrivals[r]),
        c.added.assign(static_cast<std::size_t>(clairvoyant::rooms_for(problem.segments)), problem.arrivals[r]);
  }
}

Nanoseconds Foresight::begins(Rank r) const {
  Nanoseconds free = problem_.arrivals[static_cast<std::size_t>(r)];
  for (const Landing& l : at(r).landings) {
    if (l.landed.at > free) break;
    free += overhead_ + l.work.additions * l.adding;
  }
  return free;
}

/// Receiving and each addition are steps: a message that is ready in between is sent before the next.
bool Foresight::step(Course& r, const Moment& moment) {
  const Moment* adds = r.adding.empty() ? nullptr : &r.adding.front().asks;
  if (r.to_receive < r.end()) {
    const Landing& l = r.landing(r.to_receive);
    const Nanoseconds posted =
        std::max(by_turn(r.received, r.to_receive),
                 l.work.additions > 0 && !problem_.ordered ? by_turn(r.added, r.to_add) : kNever);
    const Moment late{posted};
    const Moment& asks = posted > l.landed.at ? late : l.landed;
    // What lies there when its rank comes, and the rank's first message: the first generated is the first, and receives
    // are generated where they count.
    const bool both_begin = asks.at == moment.at && asks.cause < 0 && moment.cause < 0;
    if ((both_begin ? r.to_receive < r.to_wait_for : causes_.earlier(asks, moment)) &&
        (!adds || causes_.earlier(asks, *adds)))
      return receive(r, asks), true;
  }
  if (!adds) return false;
  // Both may wait for the same: then what was generated first comes first.
  const bool alike = adds->cause >= 0 && adds->cause == moment.cause && r.adding.front().landing < r.generated;
  return (alike || causes_.earlier(*adds, moment)) && (add(r), true);
}

void Foresight::receive(Course& r, const Moment& asks) {
  Landing& l = r.landing(r.to_receive);
  // What takes no time does not wait for the processor.
  const Nanoseconds received = overhead_ > 0 ? r.processor = std::max(r.processor, asks.at) + overhead_ : asks.at;
  by_turn(r.received, r.to_receive) = received;
  r.settled = std::max(r.settled, asks.at);
  if (l.work.additions > 0 && l.adding > 0) {
    r.adding.push_back({after(asks, received), r.to_receive, l.work.additions});
    by_turn(r.added, r.to_add++) = kPending;
  } else {
    l.done = after(asks, received);
  }
  ++r.to_receive;
}

void Foresight::add(Course& r) {
  Adding& a = r.adding.front();
  r.processor = std::max(r.processor, a.asks.at) + r.landing(a.landing).adding;
  r.settled = std::max(r.settled, a.asks.at);
  const Moment added = a.asks = after(a.asks, r.processor);
  if (--a.left > 0) return;
  by_turn(r.added, r.to_add - static_cast<std::int64_t>(r.adding.size())) = r.processor;
  r.landing(a.landing).done = added;
  // A copy takes no time, but its turn: additions that waited for the same are before it.
  r.landing(a.landing).done.turn += r.landing(a.landing).work.copied;
  r.adding.pop_front();
  if (!r.adding.empty()) r.adding.front().asks = causes_.later(added, r.adding.front().asks);
}

const Moment& Foresight::asks(const Course& r) const {
  return causes_.later(causes_.later(r.sent[static_cast<std::size_t>(r.next_sent)], r.moved),
                       causes_.later(r.summed, r.asked));
}

Nanoseconds Foresight::ready(Course& r, Nanoseconds now) {
  if (r.looked == now) return r.ready;
  std::int64_t moved = -1, summed = -1;
  for (; r.to_wait_for < r.end() && r.landing(r.to_wait_for).counts <= now; ++r.to_wait_for)
    (r.landing(r.to_wait_for).work.additions > 0 ? summed : moved) = r.to_wait_for;
  const Moment whenever{kPending};
  const auto wait_for = [&](std::int64_t landing, Moment& until) {
    if (landing < 0) return;
    while (r.landing(landing).done.at == kNever && step(r, whenever)) {
    }
    until = r.landing(landing).done;
  };
  wait_for(moved, r.moved), wait_for(summed, r.summed);
  const Moment& ready = asks(r);
  while (step(r, ready)) {
  }
  for (; r.first < r.to_wait_for && r.landings.front().done.at != kNever; ++r.first) r.landings.pop_front();
  r.looked = now;
  return r.ready = overhead_ > 0 ? std::max(r.processor, ready.at) : ready.at;
}

bool Foresight::has_receive(Course& r, bool added, Nanoseconds then, Nanoseconds now) {
  ready(r, now);
  if (r.end() - r.to_receive >= kPosted || by_turn(r.received, r.end()) > then) return false;
  return !added || problem_.ordered ||
         (r.contributions - r.to_add < static_cast<std::int64_t>(r.added.size()) &&
          by_turn(r.added, r.contributions) <= then);
}

Foresight::Going Foresight::going(Rank src, Rank dst, Bytes bytes, Nanoseconds now) {
  const Course& from = at(src);
  Course& to = at(dst);
  const Nanoseconds posted = ready(at(src), now) + overhead_, from_then_on = present(dst, bytes);
  // When their receiver comes, they go in the order of its receives, which is the plan's.
  const bool early = posted < from_then_on ? from_then_on <= from.goes || to.comes >= from_then_on + (to.waiting > 0) ||
                                                 to.waiting == kPosted
                                           : posted < std::max(from.goes, to.comes + apart_);
  Going out{posted, from_then_on, std::max(posted, from_then_on), early, {}};
  if (from_then_on == kNever || !early) return out;
  // Two that go from there at the same moment: who is first would be anybody's guess.
  if (const Moment& held = pace(to, now); held.at > from.goes && held.at >= to.comes + apart_)
    out.held = held, out.goes = held.at, out.early = false;
  return out;
}

bool Foresight::holds(Rank dst, Nanoseconds now) { return pace(at(dst), now).at >= at(dst).comes + apart_; }

bool Foresight::in_turn(Rank src, Rank dst, bool added, Nanoseconds now) {
  Course& to = at(dst);
  const Going message = going(src, dst, problem_.segment_bytes(), now);
  if (message.posted == message.present && src < dst)
    return false;  // posted before it, gone after what is posted at the same time
  if (message.early) return false;
  if (message.present != kNever && !has_receive(to, added, message.goes, now)) return false;
  // What would be there before what the receiver is known to do would delay that.
  return overhead_ + adding_ == 0 ||
         std::max(message.is_held() ? message.goes : message.posted, to.port) + shortest_ > to.settled;
}

Nanoseconds Foresight::busy_until(Course& r) const {
  Nanoseconds out = r.processor;
  if (overhead_ + adding_ == 0)
    return r.to_receive < r.end() ? std::max(out, r.landings.back().landed.at)
                                  : out;  // they land in the order of the port
  for (const Adding& a : r.adding) out += a.left * r.landing(a.landing).adding;
  for (std::int64_t n = r.to_receive; n < r.end(); ++n)
    out = std::max(out, r.landing(n).landed.at) + overhead_ + r.landing(n).work.additions * r.landing(n).adding;
  return out;
}

Foresight::Planned Foresight::send(Rank src, Rank dst, Bytes bytes, const Work& work, Nanoseconds now) {
  Course &from = at(src), &to = at(dst);
  const Going message = going(src, dst, bytes, now);
  from.looked = to.looked = kNever;
  from.asked = asks(from);
  from.settled = std::max(from.settled, from.asked.at);
  if (overhead_ > 0) from.processor = message.posted;
  to.waiting += message.posted < message.present && !message.is_held();
  const Moment goes = message.is_held() ? message.held : after(from.asked, message.goes);
  to.comes = goes.at, from.goes = goes.at + message.is_held();
  from.left = to.port = std::max({goes.at, from.left, to.port}) + problem_.network.port_ns(bytes);
  const Nanoseconds landed = to.port + rounded_up(problem_.network.flight_ns(bytes));
  Moment arrives = after(goes, landed);
  from.sent[static_cast<std::size_t>(from.next_sent)] =
      problem_.network.eager(bytes) ? after(goes, from.left) : arrives;
  ++arrives.turn;  // its sender is told first
  from.next_sent = (from.next_sent + 1) % sends_;

  const Nanoseconds adding = rounded_up(problem_.network.gamma_ns_per_byte * static_cast<double>(bytes)),
                    taking_in = overhead_ + work.additions * adding;
  const Nanoseconds there = to.begun ? std::max(landed, work.additions > 0 ? busy_until(to) : 0) + taking_in
                                     : to.taken_in = std::max(to.taken_in, landed) + taking_in;
  const auto at_least_next = [&](Nanoseconds t) { return std::max(grid_.up(t), now + grid_.slot); };
  // With several under way a slot begins when the port does, and the message has been posted before.
  const Nanoseconds posting = sends_ > 1 ? overhead_ : 0;
  to.counts =
      std::max(to.counts, at_least_next(there + posting + (dst == problem_.sink ? (overhead_ + adding_) / 2 : -late_)));
  to.contributions += work.additions > 0 && adding > 0;
  to.landings.push_back({arrives, to.counts, work, adding, {}});
  if (message.is_held()) to.generated = to.end();
  return {to.counts, at_least_next(std::max(from.left, asks(from).at + overhead_) - behind_),
          at_least_next(to.port - behind_), message.is_held()};
}

}  // namespace latecomer::core::exchange

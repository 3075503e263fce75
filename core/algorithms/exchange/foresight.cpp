// SPDX-License-Identifier: BSD-3-Clause
// The course of eager messages, one rank's processor and ports at a time.
#include "core/algorithms/exchange/foresight.hpp"

namespace latecomer::core::exchange {

namespace {
/// As the model rounds it.
Nanoseconds whole(double ns) { return static_cast<Nanoseconds>(ns + 0.5); }
}  // namespace

Foresight::Foresight(const Problem& problem, const Grid& grid)
    : problem_(problem), grid_(grid), flight_(static_cast<Nanoseconds>(problem.network.flight_ns(problem.segment_bytes()))), overhead_(whole(problem.network.overhead_ns)), shortest_(problem.network.port_ns(problem.segment_bytes() - problem.element_bytes) + flight_), courses_(problem.arrivals.size()) {
  // The processor may be at another message just then, and at one of its own.
  others_ = 2 * (overhead_ + whole(problem.network.gamma_ns_per_byte * static_cast<double>(problem.segment_bytes())));
  // Nearer than that is the order of two messages not to be trusted: a processor may be at another just then.
  constexpr double kApart = 0.3;
  // Whoever is behind its slots by more than that leaves one out.
  constexpr double kBehind = 0.5;
  apart_ = static_cast<Nanoseconds>(kApart * static_cast<double>(grid.slot));
  behind_ = static_cast<Nanoseconds>(kBehind * static_cast<double>(grid.slot));
  for (std::size_t r = 0; r < courses_.size(); ++r) courses_[r].paced = courses_[r].processor = courses_[r].taken_in = problem.arrivals[r];
}

Nanoseconds Foresight::begins(Rank r) const {
  Nanoseconds free = problem_.arrivals[static_cast<std::size_t>(r)];
  for (const Landing& l : at(r).lying) {
    if (l.landed > free) break;
    free += overhead_ + l.additions * l.adding;
  }
  return free;
}

/// Receiving and each addition are steps: a send that is ready in between comes before the next. Returns when it is done.
Nanoseconds Foresight::next_step(Course& r) const {
  Landing& l = r.lying.front();
  Nanoseconds done;
  if (l.adds == kNever) {
    // What takes no time does not wait for the processor.
    r.received = done = l.adds = overhead_ > 0 ? r.processor = std::max(r.processor, l.landed) + overhead_ : l.landed;
    if (l.additions > 0) return done;
  } else {
    done = l.adds = r.processor = std::max(r.processor, l.adds) + l.adding;
    if (--l.additions > 0) return done;
  }
  r.lying.pop_front();
  return done;
}

Nanoseconds Foresight::ready(Course& r, Nanoseconds now) const {
  while (!r.lying.empty() && r.lying.front().counts <= now) r.paced = std::max(r.paced, next_step(r));
  const Nanoseconds ready = r.asks = std::max(r.left, r.paced);
  // Whoever asked the processor first; at the same moment, what was under way before.
  const auto before = [&](const Landing& l) {
    const Nanoseconds asks = l.adds == kNever ? l.landed : l.adds;
    if (asks != ready) return asks < ready;
    return l.adds == kNever && (r.left < ready || std::max(l.posted, r.received) < r.sent);
  };
  while (!r.lying.empty() && before(r.lying.front())) next_step(r);
  return overhead_ > 0 ? std::max(r.processor, ready) : ready;
}

bool Foresight::in_turn(Rank src, Rank dst, Nanoseconds now) {
  const Course& to = at(dst);
  const Nanoseconds posted = ready(at(src), now) + overhead_;
  if (posted < to.posted + apart_) return false;
  // What would be there before the receiver's last message, which was planned without it, would delay that.
  return std::max(posted, to.port) + shortest_ > to.asked || others_ == 0;
}

Foresight::Planned Foresight::send(Rank src, Rank dst, Bytes bytes, int additions, Nanoseconds now) {
  Course &from = at(src), &to = at(dst);
  to.posted = ready(from, now) + overhead_;
  if (overhead_ > 0) from.processor = to.posted;
  from.sent = to.posted, from.asked = from.asks;
  from.left = to.port = std::max(to.posted, to.port) + problem_.network.port_ns(bytes);
  const Nanoseconds landed = to.port + flight_, adding = whole(problem_.network.gamma_ns_per_byte * static_cast<double>(bytes)), taking_in = overhead_ + additions * adding;
  const Nanoseconds there = to.begun ? landed + taking_in + others_ : to.taken_in = std::max(to.taken_in, landed) + taking_in;
  const auto at_least_next = [&](Nanoseconds t) { return std::max(grid_.up(t), now + grid_.slot); };
  to.counts = std::max(to.counts, at_least_next(there));
  to.lying.push_back({to.posted, landed, to.counts, adding > 0 ? additions : 0, adding, kNever});
  return {to.counts, at_least_next(from.left - behind_), at_least_next(to.port - behind_)};
}

}  // namespace latecomer::core::exchange

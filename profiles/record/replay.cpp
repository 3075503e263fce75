// SPDX-License-Identifier: BSD-3-Clause
// Replays recorded calls in an order in which each follows the calls that its ranks made before.
#include "profiles/record/replay.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "profiles/record/waiting.hpp"

namespace latecomer::profiles {

using core::Nanoseconds;
using core::Rank;

Replay::Replay(std::vector<ReplayCall> calls, int ranks) : calls_(std::move(calls)), ranks_(ranks) {
  put_in_order(ranks);
}

void Replay::put_in_order(int ranks) {
  std::vector<std::vector<std::pair<Nanoseconds, std::size_t>>> of_rank(static_cast<std::size_t>(ranks));
  std::vector<std::size_t> missing(calls_.size());  // members that have not yet come to the call
  for (std::size_t c = 0; c < calls_.size(); ++c) {
    missing[c] = calls_[c].ranks.size();
    for (std::size_t i = 0; i < calls_[c].ranks.size(); ++i)
      of_rank[static_cast<std::size_t>(calls_[c].ranks[i])].emplace_back(calls_[c].arrivals[i], c);
  }
  std::vector<std::size_t> next(of_rank.size());
  std::vector<bool> done(calls_.size());
  std::deque<std::size_t> ready;
  const auto look = [&](std::size_t rank) {
    const auto& mine = of_rank[rank];
    while (next[rank] < mine.size() && done[mine[next[rank]].second]) ++next[rank];
    if (next[rank] < mine.size() && --missing[mine[next[rank]].second] == 0) ready.push_back(mine[next[rank]].second);
  };
  for (std::size_t r = 0; r < of_rank.size(); ++r) std::ranges::sort(of_rank[r]), look(r);
  std::vector<ReplayCall> ordered;
  ordered.reserve(calls_.size());
  // Non-blocking calls may come in another order on each rank. Then no call is ready, and the earliest goes first.
  for (std::size_t rest = 0; ordered.size() < calls_.size();) {
    if (ready.empty()) {
      while (done[rest]) ++rest;
      ready.push_back(rest);
    }
    const std::size_t c = ready.front();
    ready.pop_front();
    if (done[c]) continue;
    done[c] = true;
    ordered.push_back(calls_[c]);
    for (const Rank rank : calls_[c].ranks)
      if (const auto r = static_cast<std::size_t>(rank); of_rank[r][next[r]].second == c) look(r);
  }
  calls_ = std::move(ordered);
}

double Replay::time(const Change& change) const {
  struct State {
    std::int64_t part = 0;
    double recorded = 0, now = 0;  // when it left its latest call of the part
    bool fresh = true;             // it has made no call
  };
  State begin;
  if (!calls_.empty()) {
    const auto first_of = [](const ReplayCall& c) { return *std::ranges::min_element(c.arrivals); };
    const auto first = std::ranges::min_element(calls_, {}, first_of);
    begin.part = first->part, begin.recorded = begin.now = static_cast<double>(first_of(*first));
  }
  std::vector<State> states(static_cast<std::size_t>(ranks_), begin);
  std::map<std::int64_t, std::pair<double, double>> parts = {{begin.part, {begin.now, begin.now}}};  // begin and end
  std::vector<double> arrival, recorded, interval, others;
  std::vector<bool> follows;
  for (const ReplayCall& call : calls_) {
    const std::size_t ranks = call.ranks.size();
    const bool here = change.site < 0 || change.site == call.site;
    arrival.assign(ranks, 0), interval.assign(ranks, 0), follows.assign(ranks, false);
    double sum = 0, known = 0;
    for (std::size_t i = 0; i < ranks; ++i) {
      const State& state = states[static_cast<std::size_t>(call.ranks[i])];
      follows[i] = state.part == call.part;
      if (!follows[i]) continue;
      interval[i] = static_cast<double>(call.arrivals[i]) - state.recorded;
      sum += interval[i], ++known;
    }
    for (std::size_t i = 0; i < ranks; ++i) {
      if (!follows[i] || !here || (change.set_up && !states[static_cast<std::size_t>(call.ranks[i])].fresh)) continue;
      if (change.kind == Change::Kind::equal_work) interval[i] = sum / known;
      if (change.kind != Change::Kind::on_time || call.ranks[i] != change.rank || known < 2) continue;
      others.clear();
      for (std::size_t k = 0; k < ranks; ++k)
        if (k != i && follows[k]) others.push_back(interval[k]);
      const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
      std::ranges::nth_element(others, middle);
      interval[i] = std::min(interval[i], *middle);
    }
    for (std::size_t i = 0; i < ranks; ++i)
      arrival[i] = follows[i] ? states[static_cast<std::size_t>(call.ranks[i])].now + interval[i]
                              : static_cast<double>(call.arrivals[i]);
    const bool waits = call.blocking && !(here && change.kind == Change::Kind::no_wait);
    const double factor = here && change.kind == Change::Kind::faster ? change.factor : 1;
    // Leaving is the awaited arrival plus the recorded time from there.
    std::vector<double>& ready = others;
    ready.assign(arrival.begin(), arrival.end()), recorded.resize(ranks);
    for (std::size_t i = 0; i < ranks; ++i) recorded[i] = static_cast<double>(call.arrivals[i]);
    if (waits) {
      const auto look = [&](auto at, std::vector<double>& out) {
        for_each_awaited(call.op, call.root, ranks, at,
                         [&](std::size_t r, std::size_t awaited) { out[r] = std::max(out[r], at(awaited)); });
      };
      look([&](std::size_t i) { return static_cast<double>(call.arrivals[i]); }, recorded);
      look([&](std::size_t i) { return arrival[i]; }, ready);
    }
    auto& [first, last] = parts.try_emplace(call.part, arrival[0], arrival[0]).first->second;
    for (std::size_t i = 0; i < ranks; ++i) {
      State& state = states[static_cast<std::size_t>(call.ranks[i])];
      const double came = static_cast<double>(call.arrivals[i]), end = static_cast<double>(call.exits[i]);
      state.part = call.part, state.fresh = false;
      if (!call.blocking || call.exits[i] < 0 || !waits) {
        // A rank that no longer waits leaves at once; the exit of a non-blocking call says nothing of its caller.
        state.recorded = waits || call.exits[i] < 0 || !call.blocking ? came : end;
        state.now = arrival[i];
      } else {
        const double after = end - recorded[i];
        // A rank that left before half of its wait was over did not wait for that arrival.
        const bool waited = after >= 0 || end - came > 0.5 * (recorded[i] - came);
        state.recorded = end;
        state.now =
            waited ? std::max(arrival[i], ready[i] + (after > 0 ? after * factor : after)) : arrival[i] + (end - came);
      }
      first = std::min(first, arrival[i]), last = std::max(last, state.now);
    }
  }
  double total = 0;
  for (const auto& [part, span] : parts) total += span.second - span.first;
  return total;
}

}  // namespace latecomer::profiles

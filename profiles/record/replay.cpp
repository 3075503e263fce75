// SPDX-License-Identifier: BSD-3-Clause
// Replays recorded calls in an order in which each follows the calls that its ranks made before.
#include "profiles/record/replay.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
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
  std::vector<std::size_t> missing(calls_.size());  // number of members whose earlier calls are not all ordered
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
  for (std::size_t r = 0; r < of_rank.size(); ++r) {
    std::ranges::sort(of_rank[r]);
    look(r);
  }
  std::vector<ReplayCall> ordered;
  ordered.reserve(calls_.size());
  // Ranks may make non-blocking calls in different orders. If no call is ready because of that, take the earliest one.
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

namespace {

/// A replay on its way through the calls.
class ReplayRun {
 public:
  ReplayRun(const std::vector<ReplayCall>& calls, int ranks, const Change& change) : change_(change) {
    State begin;
    if (!calls.empty()) {
      const auto first_of = [](const ReplayCall& c) { return *std::ranges::min_element(c.arrivals); };
      const auto first = std::ranges::min_element(calls, {}, first_of);
      begin.part = first->part;
      begin.recorded = begin.now = static_cast<double>(first_of(*first));
    }
    states_.assign(static_cast<std::size_t>(ranks), begin);
    parts_[begin.part] = {begin.now, begin.now};
  }
  void add(const ReplayCall& call) {
    here_ = change_.site < 0 || change_.site == call.site;
    arrive(call);
    leave(call);
  }
  double total() const {
    double out = 0;
    for (const auto& [part, span] : parts_) out += span.second - span.first;
    return out;
  }

 private:
  struct State {
    std::int64_t part = 0;
    double recorded = 0, now = 0;  // exit from its latest call of the part, in the record and in the replay
    bool fresh = true;             // the rank has made no call
  };
  State& state(const ReplayCall& call, std::size_t i) { return states_[static_cast<std::size_t>(call.ranks[i])]; }

  /// Sets interval_, the time of each member before the call, and follows_, whether that time is known.
  void measure(const ReplayCall& call) {
    interval_.assign(call.ranks.size(), 0);
    follows_.assign(call.ranks.size(), false);
    for (std::size_t i = 0; i < call.ranks.size(); ++i)
      if ((follows_[i] = state(call, i).part == call.part))
        interval_[i] = static_cast<double>(call.arrivals[i]) - state(call, i).recorded;
  }

  /// Sets arrival_, the arrival of each member in the replay.
  void arrive(const ReplayCall& call) {
    const std::size_t ranks = call.ranks.size();
    measure(call);
    std::vector<double>& known = scratch_;
    known.clear();
    for (std::size_t i = 0; i < ranks; ++i)
      if (follows_[i]) known.push_back(interval_[i]);
    const double mean =
        known.empty() ? 0 : std::accumulate(known.begin(), known.end(), 0.0) / static_cast<double>(known.size());
    arrival_.resize(ranks);
    for (std::size_t i = 0; i < ranks; ++i) {
      const State& mine = state(call, i);
      if (!follows_[i]) {
        arrival_[i] = static_cast<double>(call.arrivals[i]);
        continue;
      }
      double own = interval_[i];
      const bool changes = here_ && (!change_.set_up || mine.fresh);
      if (changes && change_.kind == Change::Kind::equal_work) own = mean;
      if (changes && change_.kind == Change::Kind::on_time && call.ranks[i] == change_.rank && known.size() > 1) {
        known.erase(std::ranges::find(known, own));
        const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
        std::ranges::nth_element(known, middle);
        own = std::min(own, *middle);
      }
      arrival_[i] = mine.now + own;
    }
  }

  /// Sets the exit of each member: the awaited arrival plus the recorded time from there.
  void leave(const ReplayCall& call) {
    const std::size_t ranks = call.ranks.size();
    const bool waits = call.blocking && !(here_ && change_.kind == Change::Kind::no_wait);
    const double factor = here_ && change_.kind == Change::Kind::faster ? change_.factor : 1;
    std::vector<double>&ready = scratch_, &recorded = recorded_;
    ready.assign(arrival_.begin(), arrival_.end());
    recorded.assign(call.arrivals.begin(), call.arrivals.end());
    if (waits) {
      const auto look = [&](auto at, std::vector<double>& out) {
        for_each_awaited(call.op, call.root, ranks, at,
                         [&](std::size_t r, std::size_t awaited) { out[r] = std::max(out[r], at(awaited)); });
      };
      look([&](std::size_t i) { return static_cast<double>(call.arrivals[i]); }, recorded);
      look([&](std::size_t i) { return arrival_[i]; }, ready);
    }
    auto& [first, last] = parts_.try_emplace(call.part, arrival_[0], arrival_[0]).first->second;
    for (std::size_t i = 0; i < ranks; ++i) {
      State& mine = state(call, i);
      const double came = static_cast<double>(call.arrivals[i]), end = static_cast<double>(call.exits[i]);
      mine.part = call.part;
      mine.fresh = false;
      if (!call.blocking || call.exits[i] < 0 || !waits) {
        // A rank that does not wait leaves at once. The exit of a non-blocking call is its completion, not its return.
        mine.recorded = waits || call.exits[i] < 0 || !call.blocking ? came : end;
        mine.now = arrival_[i];
      } else {
        const double after = end - recorded[i];
        // A rank that left before half of its wait was over did not wait for that arrival.
        const bool waited = after >= 0 || end - came > 0.5 * (recorded[i] - came);
        mine.recorded = end;
        mine.now = waited ? std::max(arrival_[i], ready[i] + (after > 0 ? after * factor : after))
                          : arrival_[i] + (end - came);
      }
      first = std::min(first, arrival_[i]);
      last = std::max(last, mine.now);
    }
  }

  const Change& change_;
  bool here_ = true;  // the change holds at the call's site
  std::vector<State> states_;
  std::map<std::int64_t, std::pair<double, double>> parts_;  // begin and end
  std::vector<double> arrival_, interval_, recorded_, scratch_;
  std::vector<bool> follows_;
};

}  // namespace

double Replay::time(const Change& change) const {
  ReplayRun run(calls_, ranks_, change);
  for (const ReplayCall& call : calls_) run.add(call);
  return run.total();
}

}  // namespace latecomer::profiles

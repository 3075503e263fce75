// SPDX-License-Identifier: BSD-3-Clause
// Replays recorded calls in an order in which each follows the calls that its ranks made before.
#include "profiles/record/replay.hpp"

#include <algorithm>
#include <climits>
#include <deque>
#include <numeric>
#include <tuple>

#include "profiles/record/waiting.hpp"

namespace latecomer::profiles {

using core::Nanoseconds;
using core::Rank;

Replay::Replay(std::vector<ReplayCall> calls, int ranks, std::vector<IntervalShares> shares)
    : calls_(std::move(calls)), ranks_(ranks), shares_(std::move(shares)) {
  put_in_order();
  measure();
  divide();
}

void Replay::put_in_order() {
  std::vector<std::vector<std::pair<Nanoseconds, std::size_t>>> of_rank(static_cast<std::size_t>(ranks_));
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

/// Where a rank leaves a call, as the next interval counts from there. The exit of a non-blocking call is its
/// completion, not its return.
double recorded_exit(const ReplayCall& call, std::size_t i) {
  return static_cast<double>(call.blocking && call.exits[i] >= 0 ? call.exits[i] : call.arrivals[i]);
}

double earliest(const ReplayCall& call) { return static_cast<double>(*std::ranges::min_element(call.arrivals)); }

/// The call that arrives first; nullptr: no call.
const ReplayCall* first_of(const std::vector<ReplayCall>& calls) {
  return calls.empty() ? nullptr : &*std::ranges::min_element(calls, {}, earliest);
}

}  // namespace

void Replay::measure() {
  struct State {
    std::int64_t part = 0;
    double exit = 0;
    bool first = true;
  };
  const ReplayCall* begin = first_of(calls_);
  std::vector<State> states(static_cast<std::size_t>(ranks_), begin ? State{begin->part, earliest(*begin)} : State{});
  for (const ReplayCall& call : calls_) {
    auto& mine = intervals_.emplace_back(call.ranks.size());
    for (std::size_t i = 0; i < call.ranks.size(); ++i) {
      State& state = states[static_cast<std::size_t>(call.ranks[i])];
      if (state.part == call.part) {
        const double wall = static_cast<double>(call.arrivals[i]) - state.exit;
        const double own = shares_.empty() ? 1 : shares_[static_cast<std::size_t>(call.ranks[i])].own;
        mine[i] = {wall * own, wall, true, state.first};
      }
      state = {call.part, recorded_exit(call, i), false};
    }
  }
}

void Replay::divide() {
  std::map<std::int64_t, std::size_t> parts;
  for (const ReplayCall& call : calls_) parts[call.part] = 0;
  std::size_t count = 0;
  for (auto& [part, number] : parts) number = count++;
  const bool one = count == 1;
  if (one) count = std::clamp(calls_.size() / kLeastCalls, std::size_t{1}, kStretches);
  for (std::size_t c = 0; c < calls_.size(); ++c)
    stretch_of_.push_back(one ? c * count / calls_.size() : parts[calls_[c].part]);
  stretch_count_ = count;
}

template <typename Note>
void Replay::for_each_interval(Note note) const {
  for (std::size_t c = 0; c < calls_.size(); ++c)
    for (std::size_t i = 0; i < calls_[c].ranks.size(); ++i)
      if (intervals_[c][i].known) note(c, i, intervals_[c][i]);
}

std::map<SiteRank, double> Replay::own_means() const {
  std::map<SiteRank, double> sums;
  std::map<SiteRank, double> counts;
  for_each_interval([&](std::size_t c, std::size_t i, const Interval& interval) {
    if (interval.first) return;
    const SiteRank key{calls_[c].site, calls_[c].ranks[i]};
    sums[key] += interval.own;
    ++counts[key];
  });
  for (auto& [key, sum] : sums) sum /= counts[key];
  return sums;
}

void Replay::put_on_time(const Change& change, std::vector<std::vector<double>>& own) const {
  struct Times {
    std::vector<std::tuple<double, std::size_t, std::size_t>> mine;  // own time, call, member
    std::vector<double> others;
  };
  std::map<std::pair<std::int32_t, bool>, Times> all;
  for_each_interval([&](std::size_t c, std::size_t i, const Interval& interval) {
    if ((change.set_up && !interval.first) || (change.later && interval.first)) return;
    if (change.site >= 0 && change.site != calls_[c].site) return;
    Times& times = all[{calls_[c].site, interval.first}];
    if (calls_[c].ranks[i] == change.rank) times.mine.emplace_back(interval.own, c, i);
    else times.others.push_back(interval.own);
  });
  for (auto& [key, times] : all) {
    if (times.mine.empty() || times.others.empty()) continue;
    double mine = 0;
    for (const auto& [time, c, i] : times.mine) mine += time;
    const double others = std::accumulate(times.others.begin(), times.others.end(), 0.0);
    if (mine / static_cast<double>(times.mine.size()) <= others / static_cast<double>(times.others.size())) continue;
    // The longest of the rank's times become the longest of the others', and so on.
    std::ranges::sort(times.mine);
    std::ranges::sort(times.others);
    for (std::size_t k = 0; k < times.mine.size(); ++k) {
      const auto& [time, c, i] = times.mine[k];
      own[c][i] = times.others[(2 * k + 1) * times.others.size() / (2 * times.mine.size())];
    }
  }
}

void Replay::share_work(const Change& change, std::vector<std::vector<double>>& own) const {
  std::map<std::int32_t, std::vector<std::pair<double, std::size_t>>> sites;  // mean own time of the members, call
  for (std::size_t c = 0; c < calls_.size(); ++c) {
    if (change.site >= 0 && change.site != calls_[c].site) continue;
    const auto& members = intervals_[c];
    if (std::ranges::any_of(members, [](const Interval& one) { return !one.known || one.first; })) continue;
    double sum = 0;
    for (const Interval& one : members) sum += one.own;
    sites[calls_[c].site].emplace_back(sum / static_cast<double>(members.size()), c);
  }
  for (auto& [site, calls] : sites) {
    // Not by number, so that a group has calls of the whole record.
    std::ranges::sort(calls, {}, [](const auto& call) { return std::pair(call.first, core::mix64(call.second)); });
    const std::size_t groups = std::max(std::size_t{1}, calls.size() / kAlike);
    for (std::size_t g = 0; g < groups; ++g) {
      const std::span group(calls.begin() + static_cast<std::ptrdiff_t>(g * calls.size() / groups),
                            calls.begin() + static_cast<std::ptrdiff_t>((g + 1) * calls.size() / groups));
      struct Sums {
        double calls = 0, own = 0, squares = 0;
        double mean() const { return own / calls; }
        /// The square of the standard error of the mean.
        double variance() const { return std::max(0.0, squares / calls - mean() * mean()) / calls; }
      };
      std::map<core::Rank, Sums> ranks;
      for (const auto& [mean, c] : group)
        for (std::size_t i = 0; i < calls_[c].ranks.size(); ++i) {
          Sums& sums = ranks[calls_[c].ranks[i]];
          const double one = intervals_[c][i].own;
          ++sums.calls;
          sums.own += one;
          sums.squares += one * one;
        }
      double mean = 0;
      for (const auto& [rank, sums] : ranks) mean += sums.mean() / static_cast<double>(ranks.size());
      std::map<core::Rank, double> factors;
      for (const auto& [rank, sums] : ranks) {
        // Of a difference, what chance makes stays: two standard errors.
        const double longer = sums.mean() - mean;
        const double certain = longer == 0 ? 0 : std::max(0.0, 1 - 4 * sums.variance() / (longer * longer));
        factors[rank] = sums.mean() > 0 ? 1 - certain * longer / sums.mean() : 1;
      }
      for (const auto& [length, c] : group)
        for (std::size_t i = 0; i < calls_[c].ranks.size(); ++i) own[c][i] *= factors.at(calls_[c].ranks[i]);
    }
  }
}

std::vector<std::vector<double>> Replay::own_times(const Change& change) const {
  std::vector<std::vector<double>> own;
  own.reserve(calls_.size());
  for (const auto& members : intervals_) {
    auto& mine = own.emplace_back();
    for (const Interval& interval : members) mine.push_back(interval.own);
  }
  if (change.kind == Change::Kind::on_time) put_on_time(change, own);
  if (change.kind == Change::Kind::equal_work) share_work(change, own);
  if (change.kind == Change::Kind::scaled)
    for_each_interval([&](std::size_t c, std::size_t i, const Interval& interval) {
      if (interval.first || (change.site >= 0 && change.site != calls_[c].site)) return;
      const auto factor = change.factors.find({calls_[c].site, calls_[c].ranks[i]});
      if (factor != change.factors.end()) own[c][i] *= factor->second;
    });
  return own;
}

std::map<SiteRank, double> Replay::equal(const std::map<SiteRank, double>& means) {
  std::map<SiteRank, double> out;
  for (auto from = means.begin(); from != means.end();) {
    const auto to = means.upper_bound({from->first.first, INT_MAX});
    double sum = 0;
    for (auto at = from; at != to; ++at) sum += at->second;
    const double mean = sum / static_cast<double>(std::distance(from, to));
    for (; from != to; ++from) out[from->first] = from->second > 0 ? mean / from->second : 1;
  }
  return out;
}

/// A replay on its way through the calls.
class ReplayRun {
 public:
  ReplayRun(const Replay& replay, const Change& change)
      : replay_(replay),
        change_(change),
        own_(replay.own_times(change)),
        ends_(replay.stretch_count_),
        position_(static_cast<std::size_t>(replay.ranks_), -1) {
    State begin;
    if (const ReplayCall* first = first_of(replay.calls_)) {
      begin.recorded = begin.now = earliest(*first);
      begins_[first->part] = begin.now;
    }
    states_.assign(static_cast<std::size_t>(replay.ranks_), begin);
  }
  void add(std::size_t number) {
    const ReplayCall& call = replay_.calls_[number];
    here_ = change_.site < 0 || change_.site == call.site;
    arrive(call, number);
    leave(call);
    double& end = ends_[replay_.stretch_of_[number]];
    double& begin = begins_.try_emplace(call.part, arrival_[0]).first->second;
    for (std::size_t i = 0; i < call.ranks.size(); ++i) {
      begin = std::min(begin, arrival_[i]);
      end = std::max({end, arrival_[i], state(call, i).now});
    }
  }
  /// The time of each stretch.
  std::vector<double> spans() {
    if (begins_.size() == 1) {
      double begin = begins_.begin()->second;
      for (double& end : ends_) {
        const double until = std::max(begin, end);
        end = until - begin;
        begin = until;
      }
    } else {
      std::size_t k = 0;
      for (const auto& [part, begin] : begins_) ends_[k++] -= begin;
    }
    return std::move(ends_);
  }

 private:
  struct State {
    double recorded = 0, now = 0;  // exit from its latest call, in the record and in the replay
    double shift() const { return now - recorded; }
  };
  State& state(const ReplayCall& call, std::size_t i) { return states_[static_cast<std::size_t>(call.ranks[i])]; }

  /// Sets arrival_, the arrival of each member in the replay.
  void arrive(const ReplayCall& call, std::size_t number) {
    const std::size_t ranks = call.ranks.size();
    own_shift_.resize(ranks);
    for (std::size_t i = 0; i < ranks; ++i) {
      const Replay::Interval& interval = replay_.intervals_[number][i];
      own_shift_[i] = interval.known ? state(call, i).shift() + own_[number][i] - interval.own : 0;
    }
    shift_ = own_shift_;
    if (!replay_.shares_.empty()) shorten_waits(call, number);
    arrival_.resize(ranks);
    for (std::size_t i = 0; i < ranks; ++i) arrival_[i] = static_cast<double>(call.arrivals[i]) + shift_[i];
  }

  /// Changes shift_ by the waits for messages. A rank sends as late as it arrives at the call. No wait becomes longer:
  /// how long a message lay there before is not known, and who would wait longer is not the last rank of the call.
  /// Ranks may wait for each other, so the number of rounds is limited.
  void shorten_waits(const ReplayCall& call, std::size_t number) {
    for (std::size_t i = 0; i < call.ranks.size(); ++i)
      position_[static_cast<std::size_t>(call.ranks[i])] = static_cast<int>(i);
    constexpr int kRounds = 8;
    for (int round = 0; round < kRounds; ++round) {
      before_ = shift_;
      for (std::size_t i = 0; i < call.ranks.size(); ++i) {
        const Replay::Interval& interval = replay_.intervals_[number][i];
        if (!interval.known) continue;
        shift_[i] = own_shift_[i];
        for (const auto& [peer, share] : replay_.shares_[static_cast<std::size_t>(call.ranks[i])].waits) {
          if (peer < 0 || peer >= replay_.ranks_) continue;
          const auto p = static_cast<std::size_t>(peer);
          const double comes = position_[p] >= 0 ? before_[static_cast<std::size_t>(position_[p])] : states_[p].shift();
          const double wait = share * interval.wall;
          shift_[i] += std::clamp(wait + comes - shift_[i], 0.0, wait) - wait;
        }
      }
      if (shift_ == before_) break;
    }
    for (const Rank rank : call.ranks) position_[static_cast<std::size_t>(rank)] = -1;
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
    for (std::size_t i = 0; i < ranks; ++i) {
      State& mine = state(call, i);
      const double came = static_cast<double>(call.arrivals[i]), end = static_cast<double>(call.exits[i]);
      mine.recorded = recorded_exit(call, i);
      mine.now = arrival_[i];  // a rank that does not wait leaves at once
      if (!waits || call.exits[i] < 0) continue;
      const double after = end - recorded[i];
      // A rank that left before half of its wait was over did not wait for that arrival.
      const bool waited = after >= 0 || end - came > 0.5 * (recorded[i] - came);
      mine.now =
          waited ? std::max(arrival_[i], ready[i] + (after > 0 ? after * factor : after)) : arrival_[i] + (end - came);
    }
  }

  const Replay& replay_;
  const Change& change_;
  std::vector<std::vector<double>> own_;
  bool here_ = true;  // the change holds at the call's site
  std::vector<State> states_;
  std::map<std::int64_t, double> begins_;  // by part
  std::vector<double> ends_;               // by stretch
  std::vector<int> position_;              // in the current call, by rank
  std::vector<double> arrival_, own_shift_, shift_, before_, recorded_, scratch_;
};

std::vector<double> Replay::stretches(const Change& change) const {
  ReplayRun run(*this, change);
  for (std::size_t c = 0; c < calls_.size(); ++c) run.add(c);
  return run.spans();
}

double Replay::time(const Change& change) const {
  const std::vector<double> all = stretches(change);
  return std::accumulate(all.begin(), all.end(), 0.0);
}

}  // namespace latecomer::profiles

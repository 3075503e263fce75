// SPDX-License-Identifier: BSD-3-Clause
// Decides whether the record stands for the run, and replays it.
#include "profiles/analysis/gain.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "profiles/analysis/cores.hpp"
#include "profiles/record/waiting.hpp"

namespace latecomer::profiles::analysis {
namespace {

double share_of(double part, double whole) { return whole > 0 ? part / whole : 0; }

/// The fewest stretches from which a range is taken. Chosen: the error of a spread over eight values is a quarter.
constexpr std::size_t kFewStretches = 8;
/// The record stands for the run if its waits are the run's within this factor.
constexpr double kAlike = 2;
/// The share of the waits at sites of which the record holds calls, from which it stands for the run.
constexpr double kCovered = 0.9;
/// The least computing time of a rank, and the least time without a core of the rank with most, for figures of the
/// load, ns. Chosen: a time slice of the kernel lasts 3 to 4 ms.
constexpr double kComputed = 30e6, kDelayed = 20e6;
/// What the replay errs, as shares of the run and of the gain. Measured: tests/bench/promised.
constexpr double kModelError = 0.01, kOfGain = 0.125;
/// A range that is wider than both says nothing: a share of the run, and a share of its upper end. Chosen.
constexpr double kWide = 0.03, kWideOfGain = 1.0 / 3;
/// The share of the time in messages for which it is not known who came last, from which the replay knows too little.
constexpr double kTogether = 0.3;

/// By rank, from the whole run. Collectives that the record leaves out count as waits.
std::vector<IntervalShares> shares_of(const Profile& profile) {
  std::set<std::size_t> recorded;
  for (const RecordedCall& call : profile.record->calls) recorded.insert(call.site);
  double left_out = 0, collectives = 0;
  for (const Site& site : profile.sites) {
    collectives += site.spent();
    if (!recorded.contains(site.index)) left_out += site.spent();
  }
  std::vector<IntervalShares> out(static_cast<std::size_t>(profile.job.ranks));
  for (const RankFigures& rank : profile.analysis.ranks()) {
    const ProcessTimes& t = rank.times;
    const double all = t.own() + t.messages + t.io + t.other_mpi + share_of(left_out, collectives) * t.collectives;
    if (all <= 0) continue;
    IntervalShares shares{t.own() / all, {}};
    double left = t.messages / all;
    for (const IntervalFigures::Peer& peer : rank.peers) {
      const double share = std::min(left, peer.waited / all);
      if (share > 0) shares.waits.emplace_back(static_cast<core::Rank>(peer.rank), share);
      left -= share;
    }
    for (long r = rank.first; r < rank.first + static_cast<long>(rank.ranks); ++r)
      out[static_cast<std::size_t>(r)] = shares;
  }
  return out;
}

/// The call ends earlier by no more, whichever rank comes earlier.
double longest_wait(const RecordedCall& call) {
  core::Nanoseconds out = 0;
  for (std::size_t i = 0; i < call.arrivals.size(); ++i) out = std::max(out, call.wait_ends[i] - call.arrivals[i]);
  return static_cast<double>(out);
}

double waited_in(const RecordedCall& call) {
  double out = 0;
  for (std::size_t i = 0; i < call.arrivals.size(); ++i)
    out += static_cast<double>(call.wait_ends[i] - call.arrivals[i]);
  return out;
}

}  // namespace

std::vector<ReplayCall> replay_calls(const RecordedArrivals& record) {
  std::vector<ReplayCall> out;
  out.reserve(record.calls.size());
  for (const RecordedCall& c : record.calls)
    out.push_back({c.op, static_cast<std::int32_t>(c.site), c.root, c.blocking, part_of(record, c),
                   record.groups[c.group], c.arrivals, c.exits});
  return out;
}

Gains::Gains(const Profile& profile) : profile_(profile) {
  if (share_cores(profile)) {
    why_not_ = "Ranks share cores, so the time of one depends on what the others do.";
  } else if (std::ranges::any_of(profile.loads,
                                 [](const HostLoadFigures& load) { return load.others_least() >= kLoaded; })) {
    why_not_ = "Other processes took the cores, and a replay does not know what they do in another run.";
  }
  lacks_cores_ = !why_not_.empty();
  if (!profile.record || profile.record->calls.empty()) {
    if (!lacks_cores_) why_not_ = "The profile holds no record of arrivals (policy key `record`).";
    return;
  }
  const RecordedArrivals& record = *profile.record;
  replay_.emplace(replay_calls(record), profile.job.ranks, shares_of(profile));
  const double run = profile.job.mean_run();
  for (const RankFigures& rank : profile.analysis.ranks())
    messages_ = std::max(messages_, share_of(rank.times.messages, rank.wall));
  recorded_share_ =
      std::min(1.0, static_cast<double>(record.calls.size()) / std::max(1.0, static_cast<double>(record.calls_of_job)));
  scale_ = 1 / recorded_share_ / run;
  if (!lacks_cores_) explain(profile);
}

void Gains::explain(const Profile& profile) {
  const RecordedArrivals& record = *profile.record;
  recorded_ = replay_->stretches();
  if (recorded_.size() < kFewStretches) {
    why_not_ = "The record of arrivals holds too few calls.";
    return;
  }
  std::map<std::size_t, double> recorded;  // calls by site
  double rooted = 0, all = 0, expected = 0, covered = 0, waited = 0;
  for (std::size_t c = 1; c < record.calls.size(); ++c) {  // the first call is that of the program's set-up
    const RecordedCall& call = record.calls[c];
    const double waits = waited_in(call);
    ++recorded[call.site];
    all += waits;
    waits_ += longest_wait(call);
    if (core::is_rooted(call.op)) rooted += waits;
  }
  at_most_ = rooted > 0.5 * all;
  for (const Site& site : profile.sites) {
    if (site.comm_size < 2 || site.patterns < 1) continue;
    const ProfileJob::FirstWait& first = profile.job.first_call;
    const bool set_up = first.site.empty() ? site.index == record.calls.front().site : site.id == first.site;
    const double here = std::max(0.0, site.waited - (set_up ? profile.job.first_call.waited : 0));
    waited += here;
    const auto found = recorded.find(site.index);
    if (found == recorded.end()) continue;
    covered += here;
    expected += found->second * here / std::max(1.0, site.patterns - (set_up ? 1 : 0));
  }
  const double little = kLittle * profile.job.rank_time();
  double messages = 0, together = 0;
  for (const TimedCalls& one : profile.timed_sites)
    if (one.part == "messages") {
      messages += one.time;
      together += one.together;
    }
  if (messages > 5 * little && together > kTogether * messages)
    why_not_ = "Calls waited for messages of several ranks at once, and which one came last is not known.";
  else if (waited > little && covered < kCovered * waited)
    why_not_ =
        "Most calls in which ranks waited are not in the record of arrivals, which holds calls on MPI_COMM_WORLD only: "
        "`latecomer run --record` keeps all.";
  else if (std::max(expected, all) * scale_ > kLittle * profile.job.ranks &&
           (all > kAlike * expected || expected > kAlike * all))
    why_not_ = "The waits in the recorded calls are not like those of the run.";
}

std::optional<GainRange> Gains::of(const Change& change) const {
  if (!why_not_.empty()) return {};
  const std::vector<double> changed = replay_->stretches(change);
  std::vector<double> saved(changed.size());
  for (std::size_t k = 0; k < saved.size(); ++k) saved[k] = recorded_[k] - changed[k];
  const auto n = static_cast<double>(saved.size());
  const double sum = std::accumulate(saved.begin(), saved.end(), 0.0);
  double squares = 0;
  for (const double one : saved) squares += (one - sum / n) * (one - sum / n);
  // Two standard errors of the sum. What was recorded as a whole has none.
  const double error = 2 * std::sqrt(squares / (n - 1) * n * (1 - recorded_share_));
  const double most = std::min(1.0, waits_ * scale_ + messages_);
  const double model = std::max(kModelError, kOfGain * sum * scale_);
  const auto share = [&](double time, double more) { return std::clamp(time * scale_ + more, 0.0, most); };
  const GainRange out{share(sum - error, -model), share(std::max(0.0, sum) + error, model), at_most_};
  if (!out.at_most && out.high - out.low > std::max(kWide, kWideOfGain * out.high)) return {};
  return out;
}

std::string Gains::why_no(const std::optional<GainRange>& gain) const {
  if (gain) return "";
  return why_not_.empty() ? "The recorded parts of the run differ too much from each other." : why_not_;
}

std::optional<GainRange> Gains::equal_work(std::int32_t site) const {
  return of({.kind = Change::Kind::equal_work, .site = site});
}

std::optional<GainRange> Gains::on_time(core::Rank rank, std::int32_t site) const {
  return of({.kind = Change::Kind::on_time, .site = site, .rank = rank, .later = true});
}

std::optional<Extremes> Gains::extremes(std::int32_t site) const {
  if (!replay_) return {};
  std::optional<Extremes> out;
  for (const auto& [key, mean] : replay_->own_means()) {
    if (key.first != site) continue;
    const std::pair rank(key.second, mean);
    if (!out) out = Extremes{rank, rank};
    if (mean > out->longest.second) out->longest = rank;
    if (mean < out->shortest.second) out->shortest = rank;
  }
  return out;
}

std::map<SiteRank, double> Gains::scaled(double (*share)(const ProcessTimes& times)) const {
  std::map<SiteRank, double> out;
  std::vector<double> by_rank(static_cast<std::size_t>(profile_.job.ranks), 1);
  for (const RankFigures& rank : profile_.analysis.ranks())
    if (rank.times.own() > 0)
      for (long r = rank.first; r < rank.first + static_cast<long>(rank.ranks); ++r)
        by_rank[static_cast<std::size_t>(r)] = share(rank.times) / rank.times.own();
  for (const auto& [key, mean] : replay_->own_means()) out[key] = by_rank[static_cast<std::size_t>(key.second)];
  return out;
}

std::optional<GainRange> Gains::no_delay() const {
  double delayed = 0;
  for (const RankFigures& rank : profile_.analysis.ranks()) {
    if (rank.times.computing < kComputed * rank.ranks) return {};
    delayed = std::max(delayed, rank.times.runnable / rank.ranks);
  }
  if (!why_not_.empty() || delayed < kDelayed) return {};
  return of({.kind = Change::Kind::scaled,
             .factors = scaled([](const ProcessTimes& times) { return times.own() - times.runnable; })});
}

std::optional<GainRange> Gains::equal_computing(std::int32_t site) const {
  if (!why_not_.empty()) return {};
  const auto computing = scaled([](const ProcessTimes& times) { return times.computing; });
  const auto moves = scaled([](const ProcessTimes& times) { return times.computing + times.runnable; });
  std::map<SiteRank, double> means = replay_->own_means();
  for (auto& [key, mean] : means) mean *= computing.at(key);
  Change change{.kind = Change::Kind::scaled, .site = site};
  for (const auto& [key, factor] : Replay::equal(means)) change.factors[key] = moves.at(key) * (factor - 1) + 1;
  return of(change);
}

std::optional<GainRange> Gains::as_others(std::string_view host) const {
  if (!why_not_.empty()) return {};
  const auto is_mine = [&](core::Rank rank) { return profile_.hosts[static_cast<std::size_t>(rank)] == host; };
  struct Mean {
    double sum = 0, ranks = 0;
  };
  std::map<std::int32_t, std::pair<Mean, Mean>> sites;  // of the host's ranks, and of the others
  const std::map<SiteRank, double> means = replay_->own_means();
  for (const auto& [key, mean] : means) {
    auto& [mine, others] = sites[key.first];
    Mean& to = is_mine(key.second) ? mine : others;
    to.sum += mean;
    ++to.ranks;
  }
  Change change{.kind = Change::Kind::scaled};
  for (const auto& [key, mean] : means) {
    const auto& [mine, others] = sites.at(key.first);
    if (is_mine(key.second) && others.ranks > 0 && mine.sum > 0)
      change.factors[key] = others.sum / others.ranks / (mine.sum / mine.ranks);
  }
  return of(change);
}

}  // namespace latecomer::profiles::analysis

// SPDX-License-Identifier: BSD-3-Clause
// Follows lateness on aggregates: the means of sampled intervals by site and rank.
#include "profiles/analysis/lateness.hpp"

#include <algorithm>

namespace latecomer::profiles::analysis {
namespace {

/// The share of a time below which divide() does not follow a wait further. Chosen: few hops of a chain matter.
constexpr double kLeast = 0.01;

/// The share of a rank's wait that must be for one rank for a chain to name it. Derived: no other rank has as much.
constexpr double kMostly = 0.5;

/// The share of a rank's sleep that its other threads must account for. Chosen: they may lose their cores meanwhile.
constexpr double kOfSleep = 0.5;

}  // namespace

SleepsFor sleeps_for(double slept, double threads, double threads_in_mpi) {
  if (slept <= 0) return SleepsFor::unknown;
  if (threads_in_mpi >= kOfSleep * slept) return SleepsFor::own_calls;
  return threads >= kOfSleep * slept ? SleepsFor::own_threads : SleepsFor::unknown;
}

double SiteIntervals::Compared::all_excess() const {
  double sum = 0;
  for (std::size_t k = 0; k < kCauses; ++k) sum += excess(k);
  return sum;
}

Cause SiteIntervals::Compared::largest() const {
  std::size_t most = 0;
  for (std::size_t k = 1; k < kCauses; ++k)
    if (excess(k) > excess(most)) most = k;
  return static_cast<Cause>(most);
}

void Baseline::Sums::add(const Sums& o, double sign) {
  samples += sign * o.samples;
  intervals += sign * o.intervals;
  wall += sign * o.wall;
  threads += sign * o.threads;
  threads_in_mpi += sign * o.threads_in_mpi;
  counted += sign * o.counted;
  instructions += sign * o.instructions;
  cycles += sign * o.cycles;
  for (std::size_t k = 0; k < kCauses; ++k) parts[k] += sign * o.parts[k];
}

Baseline::Sums Baseline::sums_of(const IntervalFigures& before) {
  Sums out{before.samples,
           before.stand_for,
           before.wall * before.stand_for,
           before.threads * before.stand_for,
           before.threads_in_mpi * before.stand_for,
           before.counted * before.stand_for,
           before.instructions * before.stand_for,
           before.cycles * before.stand_for,
           {}};
  out.parts[computing] = before.computing;
  out.parts[mpi_wait] = before.messages;
  out.parts[no_core] = before.runnable;
  out.parts[blocked] = before.blocked;
  out.parts[page_faults] = before.page_faults;
  out.parts[system_calls] = std::max(0.0, before.kernel - before.page_faults);
  out.parts[io] = before.io;
  out.parts[other_mpi] = before.other_mpi;
  for (double& part : out.parts) part *= before.stand_for;
  return out;
}

Baseline::Baseline(const CallFigures& calls) : all_(sums_of(calls.before)) {
  mean_wall_ = all_.intervals > 0 ? all_.wall / all_.intervals : 0;
  for (const RankRow& row : calls.ranks)
    if (row.before.samples > 0 && row.before.wall <= mean_wall_) on_time_.add(sums_of(row.before), 1);
}

std::optional<SiteIntervals::Compared> SiteIntervals::compare(const RankRow& row) const {
  const double enough = enough_samples(calls_);
  if (row.before.samples < enough) return {};
  const Baseline::Sums mine = Baseline::sums_of(row.before);
  Baseline::Sums others = base_.on_time_;
  if (row.before.wall <= base_.mean_wall_) others.add(mine, -1);
  if (others.samples < enough) {
    others = base_.all_;
    others.add(mine, -1);
  }
  if (others.samples < enough) return {};
  Compared out;
  const auto longer = [&](double Baseline::Sums::*sum) {
    return mine.*sum / mine.intervals - others.*sum / others.intervals;
  };
  out.late_ns = longer(&Baseline::Sums::wall);
  out.threads_ns = longer(&Baseline::Sums::threads);
  out.threads_in_mpi_ns = longer(&Baseline::Sums::threads_in_mpi);
  for (std::size_t k = 0; k < kCauses; ++k) {
    out.mine[k] = mine.parts[k] / mine.intervals;
    out.others[k] = others.parts[k] / others.intervals;
  }
  // The time that was counted stands for the computing time.
  const auto counted = [](const Baseline::Sums& s) { return s.counted > 0 && s.instructions > 0 && s.cycles > 0; };
  if (counted(mine) && counted(others) && out.mine[computing] > 0 && out.others[computing] > 0) {
    const auto ratio = [&](auto of) { return of(mine) / of(others); };
    out.execution = {.instructions = out.mine[computing] / out.others[computing] *
                                     ratio([](const Baseline::Sums& s) { return s.instructions / s.counted; }),
                     .cycles_each = ratio([](const Baseline::Sums& s) { return s.cycles / s.instructions; }),
                     .time_each = ratio([](const Baseline::Sums& s) { return s.counted / s.cycles; })};
  }
  return out;
}

std::vector<SiteIntervals::Peer> SiteIntervals::peers(const RankRow& row) const {
  std::vector<Peer> out;
  if (row.before.peers.empty()) return out;
  const auto mine = compare(row);
  if (!mine) return out;
  for (const IntervalFigures::Peer& p : row.before.peers) {
    Peer peer{p.rank, nullptr, p.waited, 0};
    if (const RankRow* there = calls_.row_of(p.rank); there && there != &row)
      if (const auto compared = compare(*there)) {
        peer.row = there;
        // Intervals of ranks on time vary, too. So the excess of a peer on time explains a wait only if it covers most
        // of it. Ranks leave a collective at different times, so a wait may be longer than the interval of the peer.
        // Then compare the lateness of both ranks on arrival.
        const double excess = compared->all_excess();
        if (compared->late_ns > 0 || excess >= kMostly * peer.waited) peer.explained = excess;
        if (compared->late_ns > 0 && row.offset > 0)
          peer.explained = std::max(peer.explained, mine->excess(mpi_wait) * std::min(1.0, there->offset / row.offset));
        peer.explained = std::min(peer.explained, peer.waited);
      }
    out.push_back(peer);
  }
  return out;
}

SiteIntervals::Chain SiteIntervals::follow(const RankRow& row) const {
  Chain chain{{&row}, ChainEnd::own, -1};
  for (;;) {
    const RankRow& last = *chain.rows.back();
    const auto compared = compare(last);
    if (!compared || compared->largest() != mpi_wait) return chain;
    Peer most;
    for (const Peer& p : peers(last))
      if (std::pair(p.explained, p.waited) > std::pair(most.explained, most.waited)) most = p;
    const auto ends = [&](ChainEnd end) {
      chain.end = end;
      chain.peer = most.rank;
      return chain;
    };
    // Ranks on time wait for transfers, too. So only the excess of the wait must be for one rank.
    const double excess = compared->excess(mpi_wait);
    if (most.waited < kMostly * excess) return ends(ChainEnd::several);
    if (!most.row) return ends(ChainEnd::unsampled);
    if (std::ranges::find(chain.rows, most.row) != chain.rows.end()) return ends(ChainEnd::cycle);
    if (most.explained < kMostly * excess) return ends(ChainEnd::transfer);
    chain.rows.push_back(most.row);
  }
}

void SiteIntervals::divide(const RankRow& row, double amount, double least, std::vector<const RankRow*>& path,
                           const Note& note) const {
  const auto compared = compare(row);
  const double all = compared ? compared->all_excess() : 0;
  if (all <= 0) return note(row.rank, kCauses, amount);
  for (std::size_t k = 0; k < kCauses; ++k) {
    double left = amount * compared->excess(k) / all;
    if (k == mpi_wait && left > least) {
      path.push_back(&row);
      const std::vector<Peer> waits = peers(row);
      double explained = 0;
      for (const Peer& p : waits) explained += p.explained;
      const double per = left / std::max(explained, compared->excess(mpi_wait));
      for (const Peer& p : waits) {
        const double moved = per * p.explained;
        if (moved < least || std::ranges::find(path, p.row) != path.end()) continue;
        divide(*p.row, moved, least, path, note);
        left -= moved;
      }
      path.pop_back();
    }
    if (left > 0) note(row.rank, k, left);
  }
}

void SiteIntervals::divide(const RankRow& row, double amount, const Note& note) const {
  const auto compared = compare(row);
  const double longer = compared ? compared->all_excess() : 0;
  // The lateness that the interval does not show began before an earlier collective.
  const double shown = row.offset > 0 ? std::min(1.0, longer / row.offset) : 1;
  if (shown < 1) note(row.rank, kCauses, amount * (1 - shown));
  std::vector<const RankRow*> path;
  if (shown > 0) divide(row, amount * shown, amount * kLeast, path, note);
}

bool own_threads_run(const IntervalFigures& intervals, double cores) {
  if (intervals.samples <= 0 || cores < 1) return false;
  // Threads that use more time than the other cores of the process offer take the core of the rank.
  return intervals.threads > (cores - 1) * intervals.wall + 0.5 * intervals.runnable;
}

}  // namespace latecomer::profiles::analysis

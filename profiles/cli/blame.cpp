// SPDX-License-Identifier: BSD-3-Clause
// Follows lateness on aggregates: the means of sampled intervals by site and rank.
#include "profiles/cli/blame.hpp"

#include <algorithm>

namespace latecomer::cli {
namespace {

using Json = nlohmann::ordered_json;

double of(const Json& object, const char* key) { return object.value(key, 0.0); }

/// Parts of less than this share of a time are not followed on. Chosen: a chain of waits has few hops that matter.
constexpr double kLeast = 0.01;

/// The share of a rank's wait that must be for one rank for a chain to name it. Derived: no other rank has as much.
constexpr double kMostly = 0.5;

}  // namespace

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

void SiteIntervals::Sums::add(const Sums& o, double sign) {
  samples += sign * o.samples, wall += sign * o.wall;
  for (std::size_t k = 0; k < kCauses; ++k) parts[k] += sign * o.parts[k];
}

SiteIntervals::Sums SiteIntervals::sums_of(const Json& before) {
  const double samples = of(before, "samples"), faults = of(before, "page_faults_ns");
  Sums out{samples, of(before, "wall_ns"), {}};
  out.parts[computing] = of(before, "computing_ns"), out.parts[mpi_wait] = of(before, "messages_ns");
  out.parts[off_cpu] = of(before, "runnable_ns"), out.parts[blocked] = of(before, "blocked_ns");
  out.parts[page_faults] = faults, out.parts[system_calls] = std::max(0.0, of(before, "kernel_ns") - faults);
  out.parts[io] = of(before, "io_ns");
  out.wall *= samples;
  for (double& part : out.parts) part *= samples;
  return out;
}

SiteIntervals::SiteIntervals(const Json& site) : site_(site) {
  const auto before = site.find("before");
  if (before == site.end()) return;
  all_ = sums_of(*before);
  mean_wall_ = all_.samples > 0 ? all_.wall / all_.samples : 0;
  if (of(site, "rows") > static_cast<double>(site["ranks"].size())) return;  // the ranks on time may be left out
  for (const Json& row : site["ranks"])
    if (const auto mine = row.find("before"); mine != row.end() && of(*mine, "wall_ns") <= mean_wall_)
      on_time_.add(sums_of(*mine), 1);
}

std::optional<SiteIntervals::Compared> SiteIntervals::compare(const Json& row) const {
  const auto before = row.find("before");
  if (before == row.end()) return {};
  const Sums mine = sums_of(*before);
  Sums others = on_time_;
  if (of(*before, "wall_ns") <= mean_wall_) others.add(mine, -1);
  if (others.samples < kFewSamples) others = all_, others.add(mine, -1);
  if (mine.samples < kFewSamples || others.samples < kFewSamples) return {};
  Compared out;
  out.late_ns = mine.wall / mine.samples - others.wall / others.samples;
  for (std::size_t k = 0; k < kCauses; ++k)
    out.mine[k] = mine.parts[k] / mine.samples, out.others[k] = others.parts[k] / others.samples;
  return out;
}

const Json* SiteIntervals::row_of(long rank) const {
  for (const Json& row : site_["ranks"])
    if (const long first = row["rank"].get<long>(); rank >= first && rank < first + row.value("ranks", 1L)) return &row;
  return nullptr;
}

std::vector<SiteIntervals::Peer> SiteIntervals::peers(const Json& row) const {
  std::vector<Peer> out;
  const auto before = row.find("before");
  const auto mine = compare(row);
  if (before == row.end() || !mine || !before->contains("waits_for")) return out;
  const double late = of(row, "mean_offset_ns");
  for (const Json& p : (*before)["waits_for"]) {
    Peer peer{p["rank"].get<long>(), nullptr, of(p, "wait_ns"), 0};
    if (const Json* there = row_of(peer.rank); there && there != &row)
      if (const auto compared = compare(*there)) {
        peer.row = there;
        // The parts of a rank on time vary, too. They explain a wait only if most of it lies in them. Ranks leave a
        // collective at different times, so a wait may be longer than the interval of the awaited rank: then both
        // ranks' lateness on arrival counts.
        const double excess = compared->all_excess();
        if (compared->late_ns > 0 || excess >= kMostly * peer.waited) peer.explained = excess;
        if (compared->late_ns > 0 && late > 0)
          peer.explained =
              std::max(peer.explained, mine->excess(mpi_wait) * std::min(1.0, of(*there, "mean_offset_ns") / late));
        peer.explained = std::min(peer.explained, peer.waited);
      }
    out.push_back(peer);
  }
  return out;
}

SiteIntervals::Chain SiteIntervals::follow(const Json& row) const {
  Chain chain{{&row}, ChainEnd::own, -1};
  for (;;) {
    const Json& last = *chain.rows.back();
    const auto compared = compare(last);
    if (!compared || compared->largest() != mpi_wait) return chain;
    Peer most;
    for (const Peer& p : peers(last))
      if (std::pair(p.explained, p.waited) > std::pair(most.explained, most.waited)) most = p;
    const auto ends = [&](ChainEnd end) { return chain.end = end, chain.peer = most.rank, chain; };
    // The ranks on time also wait for transfers, so only the excess must lie with one rank.
    const double excess = compared->excess(mpi_wait);
    if (most.waited < kMostly * excess) return ends(ChainEnd::several);
    if (!most.row) return ends(ChainEnd::unsampled);
    if (std::find(chain.rows.begin(), chain.rows.end(), most.row) != chain.rows.end()) return ends(ChainEnd::cycle);
    if (most.explained < kMostly * excess) return ends(ChainEnd::transfer);
    chain.rows.push_back(most.row);
  }
}

void SiteIntervals::divide(const Json& row, double amount, double least, std::vector<const Json*>& path,
                           const Note& note) const {
  const long rank = row["rank"].get<long>();
  const auto compared = compare(row);
  const double all = compared ? compared->all_excess() : 0;
  if (all <= 0) return note(rank, kCauses, amount);
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
        if (moved < least || std::find(path.begin(), path.end(), p.row) != path.end()) continue;
        divide(*p.row, moved, least, path, note), left -= moved;
      }
      path.pop_back();
    }
    if (left > 0) note(rank, k, left);
  }
}

void SiteIntervals::divide(const Json& row, double amount, const Note& note) const {
  const auto compared = compare(row);
  const double late = of(row, "mean_offset_ns"), longer = compared ? compared->all_excess() : 0;
  // What an interval does not show comes from an earlier collective.
  const double shown = late > 0 ? std::min(1.0, longer / late) : 1;
  if (shown < 1) note(row["rank"].get<long>(), kCauses, amount * (1 - shown));
  std::vector<const Json*> path;
  if (shown > 0) divide(row, amount * shown, amount * kLeast, path, note);
}

bool own_threads_run(const Json& row, double cores) {
  const auto before = row.find("before");
  if (before == row.end() || cores < 1) return false;
  // Beyond what the process's other cores can give them, the threads take the time of the rank's own core.
  return of(*before, "threads_ns") > (cores - 1) * of(*before, "wall_ns") + 0.5 * of(*before, "runnable_ns");
}

Blame blame(const Json& profile) {
  Blame out;
  for (const Json& site : profile["sites"]) {
    const SiteIntervals intervals(site);
    for (const Json& row : site["ranks"])
      if (const double awaited = of(row, "awaited_ns"); awaited > 0)
        intervals.divide(row, awaited,
                         [&](long rank, std::size_t cause, double amount) { out[rank][cause] += amount; });
  }
  return out;
}

}  // namespace latecomer::cli

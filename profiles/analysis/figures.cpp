// SPDX-License-Identifier: BSD-3-Clause
// Adds up intervals, and finds rows of ranks.
#include "profiles/analysis/figures.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "profiles/base/share.hpp"

namespace latecomer::profiles::analysis {

void IntervalFigures::add(const IntervalFigures& o) {
  const double all = stand_for + o.stand_for;
  if (o.stand_for <= 0 || all <= 0) return;
  using F = IntervalFigures;
  for (const auto field : {&F::wall, &F::collectives, &F::messages, &F::io, &F::other_mpi, &F::computing, &F::kernel,
                           &F::runnable, &F::blocked, &F::faults, &F::preempted, &F::page_faults, &F::threads,
                           &F::threads_in_mpi, &F::counted, &F::instructions, &F::cycles})
    this->*field = (this->*field * stand_for + o.*field * o.stand_for) / all;
  // If one side does not name a peer, that side did not wait for it.
  std::map<long, double> waits;
  for (const Peer& p : peers) waits[p.rank] += p.waited * stand_for / all;
  for (const Peer& p : o.peers) waits[p.rank] += p.waited * o.stand_for / all;
  peers.clear();
  for (const auto& [rank, waited] : waits) peers.push_back({rank, waited});
  std::ranges::stable_sort(peers, std::greater(), &Peer::waited);
  samples += o.samples;
  stand_for = all;
}

std::string RankRow::ranks_name(long first, long ranks) {
  return ranks > 1 ? std::to_string(first) + "-" + std::to_string(first + ranks - 1) : std::to_string(first);
}

std::string RankRow::ranks_named(long first, long ranks) {
  return (ranks == 1 ? "rank " : "the group of ranks ") + ranks_name(first, ranks);
}

const RankRow* CallFigures::row_of(long rank) const {
  const auto after = std::ranges::upper_bound(ranks, rank, {}, &RankRow::rank);
  if (after == ranks.begin()) return nullptr;
  const RankRow& row = *(after - 1);
  return rank < row.rank + row.ranks ? &row : nullptr;
}

const RankRow* CallFigures::most_awaited() const {
  const auto most = std::ranges::max_element(ranks, {}, &RankRow::awaited);
  return most == ranks.end() ? nullptr : &*most;
}

const RankRow* CallFigures::most_often_last() const {
  const auto most = std::ranges::max_element(ranks, {}, &RankRow::last);
  return most == ranks.end() || most->last <= 0 ? nullptr : &*most;
}

std::vector<const RankRow*> CallFigures::latest(std::size_t most) const {
  std::vector<const RankRow*> out;
  for (const RankRow& row : ranks) out.push_back(&row);
  std::ranges::stable_sort(out, [](const auto* a, const auto* b) { return a->offset > b->offset; });
  out.resize(std::min(most, out.size()));
  return out;
}

std::string CallFigures::last_ranks(std::size_t most) const {
  std::vector<const RankRow*> rows;
  for (const RankRow& row : ranks)
    if (row.last > 0) rows.push_back(&row);
  std::ranges::stable_sort(rows, [](const auto* a, const auto* b) { return a->last > b->last; });
  std::string out;
  for (std::size_t i = 0; i < std::min(most, rows.size()); ++i) {
    const auto share = Share::of(rows[i]->last, patterns);
    out += (i ? ", " : "") + rows[i]->name();
    out += " (" + share.percent(0, "-") + ")";
  }
  return out.empty() ? "-" : out;
}

}  // namespace latecomer::profiles::analysis

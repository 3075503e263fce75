// SPDX-License-Identifier: BSD-3-Clause
// Sums sites by rank, and ranks by host.
#include "profiles/analysis/analysis.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "profiles/analysis/error_of_sum.hpp"

namespace latecomer::profiles::analysis {

void ProcessTimes::add(const ProcessTimes& o) {
  for (const TimeColumn& c : kTimeColumns) this->*c.value += o.*c.value;
  threads += o.threads;
  threads_in_mpi += o.threads_in_mpi;
  init += o.init;
  end += o.end;
}

void Analysis::add(const CallFigures& calls, const Baseline& baseline) {
  const SiteIntervals intervals(calls, baseline);
  double members = 0, offsets = 0, computing = 0, sampled = 0;
  bool single = true;
  for (const RankRow& row : calls.ranks) {
    const auto ranks = static_cast<double>(row.ranks);
    members += ranks;
    offsets += row.offset * ranks;
    single = single && row.ranks == 1;
    per_row_ = std::max(per_row_, row.ranks);
    if (row.before.samples >= enough_samples(calls)) {
      computing += row.before.computing;
      ++sampled;
    }
  }
  // A call on a part of the ranks delays these ranks only. If the profile does not name all of them, count the same
  // delay for each rank of the job.
  const double delay = calls.after_last_sum * calls.comm_size;
  if (!single) transfers_ += delay;
  for (const RankRow& row : calls.ranks) {
    const auto ranks = static_cast<double>(row.ranks);
    Sum& sum = sums_[row.rank];
    sum.ranks = row.ranks;
    sum.waited += row.waited;
    sum.awaited += row.awaited;
    sum.last += row.last;
    if (single) sum.transfers += delay / members;
    if (row.before.samples > 0) {
      double explained = 0;
      for (const auto& peer : intervals.peers(row)) explained += peer.explained;
      sum.messages += row.before.stand_for * row.before.messages;
      sum.explained += row.before.stand_for * std::min(explained, row.before.messages);
    }
    if (row.before.samples >= enough_samples(calls)) {
      sum.computed += calls.patterns * row.before.computing;
      sum.computed_by_all += calls.patterns * computing / sampled;
    }
    if (row.awaited > 0)
      intervals.divide(row, row.awaited,
                       [&](long first, std::size_t cause, double amount) { sums_[first].blamed[cause] += amount; });
    if (calls.patterns <= 0 || members <= ranks) continue;
    const double late = row.offset - (offsets - row.offset * ranks) / (members - ranks);
    sum.late += late * calls.patterns;
    sum.calls += calls.patterns;
    const auto compared = intervals.compare(row);
    if (!compared || late <= 0) continue;
    sum.sampled += late * calls.patterns;
    for (std::size_t k = 0; k < kCauses; ++k)
      sum.excess[k] += (compared->mine[k] - compared->others[k]) * calls.patterns;
  }
}

const Analysis::Sum* Analysis::sum_of(long rank) const {
  const auto found = sums_.find(rank / per_row_ * per_row_);
  return found == sums_.end() ? nullptr : &found->second;
}

Efficiency Analysis::efficiency_of(const std::vector<ProcessFigures>& processes, const std::string* host) const {
  double own = 0, longest = 0, wall = 0, transfers = 0, ranks = 0;
  for (const ProcessFigures& p : processes) {
    if (p.wall <= 0 || (host && p.host != *host)) continue;
    const Sum* sum = sum_of(p.rank);
    const double part = p.times.own() / std::max(1.0, p.between());
    own += part;
    longest = std::max(longest, part);
    wall += p.known() - p.times.ends;
    ++ranks;
    transfers += transfers_ / static_cast<double>(processes.size()) + (sum ? sum->transfers : 0) +
                 p.times.messages * (sum && sum->messages > 0 ? 1 - sum->explained / sum->messages : 1) +
                 p.times.other_mpi;
  }
  if (ranks == 0 || longest <= 0) return {};
  Efficiency out;
  out.load_balance = own / ranks / longest;
  out.communication = std::min(1.0, longest);
  // A rank transfers no data while it is outside MPI, so the longest time outside MPI is a lower bound.
  out.transfer = std::clamp(1 - transfers / wall, out.communication, 1.0);
  out.serialisation = out.communication / out.transfer;
  return out;
}

namespace {

/// Divides amounts by their sum. Empty if the sum is 0.
std::optional<Causes> shares_of(Causes amounts) {
  const double all = std::accumulate(amounts.begin(), amounts.end(), 0.0);
  if (all <= 0) return {};
  for (double& amount : amounts) amount /= all;
  return amounts;
}

}  // namespace

void Analysis::add_causes(const Sum& sum, RankFigures& row) {
  Causes late{};
  for (std::size_t k = 0; k < kCauses; ++k) late[k] = std::max(0.0, sum.excess[k]);
  if (const double longer = std::accumulate(late.begin(), late.end(), 0.0); sum.sampled > 0 && longer > 0) {
    // If some parts of the intervals are shorter, the excess of the longer parts may be more than the lateness.
    late[kCauses] = std::max(0.0, sum.sampled - longer);
    row.causes = shares_of(late);
  }
  row.blamed = std::accumulate(sum.blamed.begin(), sum.blamed.end(), 0.0);
  row.blamed_causes = shares_of(sum.blamed);
}

void Analysis::finish(const std::vector<ProcessFigures>& all, long ranks, const std::vector<RankTotals>& sums) {
  per_row_ = std::min(per_row_, std::max(1L, ranks));
  const auto outside = [&](long rank) { return rank < 0 || rank >= ranks; };
  std::vector<ProcessFigures> processes;
  std::ranges::copy_if(all, std::back_inserter(processes), [&](const ProcessFigures& p) { return !outside(p.rank); });
  const bool single = per_row_ > 1 && !sums.empty();
  per_sum_ = single ? 1 : per_row_;
  std::map<long, RankFigures> rows;
  std::map<std::string, HostFigures> hosts;
  for (const ProcessFigures& p : processes) {
    RankFigures& row = rows[p.rank / per_sum_ * per_sum_];
    if (row.host.empty()) row.host = p.host;
    ++row.ranks;
    row.wall += p.wall;
    row.covered += p.known();
    row.times.add(p.times);
    row.messages_error = error_of_sum(row.messages_error, p.messages_error);
    if (per_sum_ == 1) row.peers = p.peers;
    if (p.host.empty()) continue;
    HostFigures& host = hosts[p.host];
    ++host.ranks;
    host.wall += p.wall;
    host.covered += p.known();
    host.times.add(p.times);
  }
  for (const RankTotals& sum : sums) {
    if (!single || outside(sum.rank)) continue;
    RankFigures& row = rows[sum.rank];
    row.ranks = 1;
    row.waited = sum.waited;
    row.awaited = sum.awaited;
    row.last = sum.last;
    row.calls = sum.calls;
    if (sum.calls > 0) row.late = sum.late;
  }
  for (const auto& [first, sum] : sums_) {
    if (outside(first)) continue;
    if (single) {
      const long shared = std::min(sum.ranks, ranks - first);
      for (auto row = rows.lower_bound(first); row != rows.end() && row->first < first + shared; ++row) {
        row->second.causes_first = first;
        row->second.causes_ranks = shared;
        add_causes(sum, row->second);
        row->second.blamed /= static_cast<double>(shared);
      }
      continue;
    }
    RankFigures& row = rows[first / per_row_ * per_row_];
    if (row.ranks == 0) row.ranks = static_cast<double>(sum.ranks);
    row.waited += sum.waited;
    row.awaited += sum.awaited;
    row.last += sum.last;
    row.computed = sum.computed;
    row.computed_by_all = sum.computed_by_all;
    row.calls += sum.calls;
    if (sum.calls > 0) row.late = sum.late / sum.calls;
    add_causes(sum, row);
  }
  for (auto& [first, row] : rows) {
    row.first = first;
    if (const auto host = hosts.find(row.host); host != hosts.end()) {
      host->second.waited += row.waited;
      host->second.awaited += row.awaited;
      host->second.last += row.last;
    }
    ranks_.push_back(std::move(row));
  }
  for (auto& [name, host] : hosts) {
    host.name = name;
    host.efficiency = efficiency_of(processes, &name);
    hosts_.push_back(std::move(host));
  }
  efficiency_ = efficiency_of(processes, nullptr);
  sums_.clear();
}

}  // namespace latecomer::profiles::analysis

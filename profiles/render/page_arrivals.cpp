// SPDX-License-Identifier: BSD-3-Clause
// Reduces the record of arrivals to bins of time and of ranks.
#include "profiles/render/page_arrivals.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "profiles/format/recorded_calls.hpp"
#include "profiles/render/page_data.hpp"
#include "profiles/render/page_stretches.hpp"

namespace latecomer::profiles {
namespace {

/// Derived: about two pixels per bin on a page of 1,000 pixels, and 20 sites as in the first page of the table.
constexpr std::size_t kTimeBins = 400, kRankBins = 250, kPoints = 300, kSitesShown = 20, kRanksShown = 4;
/// Derived: 16 bytes each make 128 MB.
constexpr std::size_t kMostMeans = 8'000'000;

/// One recorded call. `offsets_ns`: per rank of `group`, from the first arrival.
struct PageEvent {
  double at_ns = 0, last_ns = 0, median_ns = 0, waited_ns = 0;
  core::Rank last_rank = 0;
  const std::vector<core::Rank>* group = nullptr;
  std::vector<double> offsets_ns;
};

/// The calls of communicators of several ranks, by the place of the site in the file.
using EventsOf = std::map<std::size_t, std::vector<PageEvent>>;
EventsOf events_of(const RecordedArrivals& record) {
  EventsOf out;
  for (const RecordedCall& call : record.calls) {
    if (call.arrivals.size() < 2) continue;
    PageEvent event;
    event.group = &record.groups[call.group];
    const auto [first, last] = std::ranges::minmax_element(call.arrivals);
    event.last_rank = (*event.group)[static_cast<std::size_t>(last - call.arrivals.begin())];
    event.at_ns = static_cast<double>(*first);
    event.last_ns = static_cast<double>(*last - *first);
    for (std::size_t i = 0; i < call.arrivals.size(); ++i) {
      event.offsets_ns.push_back(static_cast<double>(call.arrivals[i] - *first));
      event.waited_ns += static_cast<double>(call.wait_ends[i] - call.arrivals[i]);
    }
    std::vector<double> sorted = event.offsets_ns;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    event.median_ns = *middle;
    out[call.site].push_back(std::move(event));
  }
  return out;
}

struct Mean {
  double sum = 0, count = 0;
  void add(double value) {
    sum += value;
    ++count;
  }
  double value() const { return count > 0 ? sum / count : kNoValue; }
};

std::size_t bin(double at, double span, std::size_t bins) {
  return static_cast<std::size_t>(std::clamp(at / span, 0.0, 1.0) * static_cast<double>(bins - 1) + 0.5);
}

/// The calls of a site over time: one point per call, or per bin of time if there are more than kPoints.
Json series(const std::vector<const PageEvent*>& calls, double span) {
  std::map<core::Rank, Mean> ranks;
  for (const PageEvent* e : calls)
    for (std::size_t i = 0; i < e->offsets_ns.size(); ++i) ranks[(*e->group)[i]].add(e->offsets_ns[i]);
  std::vector<core::Rank> latest;
  latest.reserve(ranks.size());
  for (const auto& [rank, mean] : ranks) latest.push_back(rank);
  const std::size_t shown = std::min(kRanksShown, latest.size());
  std::partial_sort(latest.begin(), latest.begin() + static_cast<std::ptrdiff_t>(shown), latest.end(),
                    [&](auto a, auto b) { return std::pair(-ranks[a].value(), a) < std::pair(-ranks[b].value(), b); });
  latest.resize(shown);
  struct Point {
    Mean at, median, last;
    double most = -1;
    core::Rank last_rank = -1;
    std::vector<Mean> ranks;
  };
  const bool each = calls.size() <= kPoints;
  std::vector<Point> points(each ? calls.size() : kPoints);
  for (std::size_t c = 0; c < calls.size(); ++c) {
    const PageEvent& e = *calls[c];
    Point& p = points[each ? c : bin(e.at_ns, span, kPoints)];
    p.at.add(e.at_ns);
    p.median.add(e.median_ns);
    p.last.add(e.last_ns);
    if (e.last_ns > p.most) {
      p.most = e.last_ns;
      p.last_rank = e.last_rank;
    }
    p.ranks.resize(latest.size());
    for (std::size_t i = 0; i < e.offsets_ns.size(); ++i)
      for (std::size_t k = 0; k < latest.size(); ++k)
        if ((*e.group)[i] == latest[k]) p.ranks[k].add(e.offsets_ns[i]);
  }
  Json at = Json::array(), median = at, last = at, last_rank = at, lines = at;
  for (std::size_t k = 0; k < latest.size(); ++k) lines.push_back({{"rank", latest[k]}, {"offset_ns", at}});
  for (const Point& p : points) {
    if (p.at.count == 0) continue;
    at.push_back(std::round(p.at.value()));
    median.push_back(rounded(p.median.value()));
    last.push_back(rounded(p.last.value()));
    last_rank.push_back(p.last_rank);
    for (std::size_t k = 0; k < latest.size(); ++k)
      lines[k]["offset_ns"].push_back(p.ranks[k].count > 0 ? rounded(p.ranks[k].value()) : Json(nullptr));
  }
  return {{"calls", calls.size()}, {"each", each},           {"at_ns", at},   {"median_ns", median},
          {"last_ns", last},       {"last_rank", last_rank}, {"ranks", lines}};
}

/// Ranks by time: the mean offset of each rank in each bin of time, then the largest of the ranks that share a row.
Json ranks_by_time(const EventsOf& sites, double span) {
  std::map<core::Rank, std::size_t> place;
  std::size_t calls = 0;
  for (const auto& [site, events] : sites) {
    calls += events.size();
    for (const PageEvent& e : events)
      for (std::size_t i = 0; i < e.offsets_ns.size(); ++i) place[(*e.group)[i]] = 0;
  }
  std::vector<core::Rank> ranks;
  for (auto& [rank, at] : place) {
    at = ranks.size();
    ranks.push_back(rank);
  }
  const std::size_t times = std::clamp<std::size_t>(std::min(calls, kMostMeans / ranks.size()), 1, kTimeBins),
                    per = (ranks.size() + kRankBins - 1) / kRankBins, rows = (ranks.size() + per - 1) / per;
  std::vector<Mean> means(ranks.size() * times);
  for (const auto& [site, events] : sites)
    for (const PageEvent& e : events)
      for (std::size_t i = 0; i < e.offsets_ns.size(); ++i)
        means[place[(*e.group)[i]] * times + bin(e.at_ns, span, times)].add(e.offsets_ns[i]);
  std::vector<double> cells(rows * times, kNoValue);
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (std::size_t t = 0; t < times; ++t) {
      double& cell = cells[r / per * times + t];
      cell = std::max(cell, means[r * times + t].value());
    }
  Json names = Json::array();
  for (std::size_t r = 0; r < rows; ++r) {
    const auto first = ranks[r * per], last = ranks[std::min(ranks.size(), (r + 1) * per) - 1];
    names.push_back(first == last ? std::to_string(first) : std::to_string(first) + "-" + std::to_string(last));
  }
  return {{"rows", names}, {"ranks_per_row", per}, {"times", times}, {"offset", packed(cells)}};
}

}  // namespace

Json page_arrivals(const Profile& profile) {
  if (!profile.record) return nullptr;
  const RecordedArrivals& record = *profile.record;
  const EventsOf sites = events_of(record);
  if (sites.empty()) return nullptr;
  double end = 0;
  std::vector<std::pair<double, std::size_t>> order;
  std::vector<const PageEvent*> all;
  for (const auto& [site, events] : sites) {
    double waited = 0;
    for (const PageEvent& e : events) {
      end = std::max(end, e.at_ns);
      waited += e.waited_ns;
      all.push_back(&e);
    }
    order.emplace_back(-waited, site);
  }
  std::ranges::stable_sort(all, [](const PageEvent* a, const PageEvent* b) { return a->at_ns < b->at_ns; });
  std::ranges::stable_sort(order);
  Json plots = Json::array();
  const double span = std::max(end, 1.0);
  plots.push_back(series(all, span));
  for (std::size_t i = 0; i < std::min(order.size(), kSitesShown); ++i) {
    std::vector<const PageEvent*> calls;
    for (const PageEvent& e : sites.at(order[i].second)) calls.push_back(&e);
    plots.push_back(series(calls, span));
    plots.back()["site"] = record.site_ids[order[i].second];
  }
  return {{"window_ns", record.window_ns},
          {"stride", record.stride},
          {"calls", record.calls_of_job},
          {"calls_kept", record.calls.size() + record.left_out},
          {"span_ns", span},
          {"sites", order.size()},
          {"points", kPoints},
          {"by_time", ranks_by_time(sites, span)},
          {"plots", plots},
          {"sample", record.sample},
          {"stretches", page_stretches(record)}};
}

}  // namespace latecomer::profiles

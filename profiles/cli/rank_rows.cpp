// SPDX-License-Identifier: BSD-3-Clause
// Joins the processes of a profile with the sums over its sites.
#include "profiles/cli/rank_rows.hpp"

#include <algorithm>

#include "profiles/cli/profile_file.hpp"

namespace latecomer::cli {

void TimeRow::add(const TimeRow& o) {
  ranks += o.ranks, wall += o.wall, waited += o.waited, awaited += o.awaited, last += o.last;
  for (std::size_t k = 0; k < std::size(kTimeParts); ++k) parts[k] += o.parts[k];
}

void RankSums::add(double calls, const std::vector<SiteRow>& site) {
  double all = 0, offsets = 0;
  for (const SiteRow& r : site) all += r.ranks, offsets += r.offset * r.ranks;
  for (const SiteRow& r : site) {
    // Only a damaged profile has other ranks.
    if (!(r.first >= 0 && r.first < 1e9 && r.ranks >= 1 && r.ranks < 1e9)) continue;
    Sum& sum = sums_[static_cast<long>(r.first)];
    sum.ranks = r.ranks, sum.waited += r.waited, sum.awaited += r.awaited, sum.last += r.last;
    if (calls == 0 || all <= r.ranks) continue;
    sum.late += calls * (r.offset - (offsets - r.offset * r.ranks) / (all - r.ranks)), sum.calls += calls;
  }
}

Json RankSums::json() const {
  Json out = Json::array();
  for (const auto& [rank, s] : sums_)
    out.push_back({rank, static_cast<long>(s.ranks), s.waited, s.awaited, s.last,
                   s.calls > 0 ? Json(s.late / s.calls) : Json(nullptr)});
  return out;
}

namespace {

Json sums_of(const Json& profile) {
  if (const auto known = profile.find("rank_sums"); known != profile.end()) return *known;
  RankSums sums;
  for (const Json& site : profile["sites"]) {
    std::vector<RankSums::SiteRow> rows;
    for (const Json& r : site["ranks"])
      rows.push_back({r["rank"].get<double>(), r.value("ranks", 1.0), r["mean_offset_ns"].get<double>(),
                      r.value("waited_ns", 0.0), r.value("awaited_ns", 0.0), r["last_count"].get<double>()});
    sums.add(site["patterns"].get<double>(), rows);
  }
  return sums.json();
}

}  // namespace

std::vector<TimeRow> rank_rows(const Json& profile) {
  const Json sums = sums_of(profile);
  const long ranks = profile["job"]["ranks"].get<long>();
  long per = 1;
  for (const Json& sum : sums) per = std::max(per, std::min(sum[1].get<long>(), ranks));
  std::map<long, TimeRow> rows;
  for (const Json& p : profile.value("processes", Json::array())) {
    const long rank = p["rank"].get<long>();
    if (rank < 0 || rank >= ranks) continue;
    TimeRow& row = rows[rank / per * per];
    if (row.host.empty()) row.host = p["host"].get<std::string>();
    ++row.ranks, row.wall += p["wall_ns"].get<double>();
    for (std::size_t k = 0; k < std::size(kTimeParts); ++k) row.parts[k] += p[kTimeParts[k].first].get<double>();
  }
  for (const Json& sum : sums) {
    const long first = sum[0].get<long>();
    if (first >= ranks) continue;
    TimeRow& row = rows[first / per * per];
    if (row.ranks == 0) row.ranks = sum[1].get<double>();
    row.waited += sum[2].get<double>(), row.awaited += sum[3].get<double>(), row.last += sum[4].get<double>();
    if (!sum[5].is_null()) row.late = sum[5].get<double>();
  }
  std::vector<TimeRow> out;
  out.reserve(rows.size());
  for (auto& [first, row] : rows) {
    row.first = first, row.name = row_name({{"rank", first}, {"ranks", static_cast<long>(row.ranks)}});
    out.push_back(std::move(row));
  }
  return out;
}

std::vector<TimeRow> host_rows(const std::vector<TimeRow>& ranks) {
  std::map<std::string, TimeRow> rows;
  for (const TimeRow& rank : ranks)
    if (!rank.host.empty()) rows[rank.host].add(rank);
  std::vector<TimeRow> out;
  out.reserve(rows.size());
  for (auto& [host, row] : rows) {
    row.host = host, row.name = std::to_string(static_cast<long>(row.ranks));
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace latecomer::cli

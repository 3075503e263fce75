// SPDX-License-Identifier: BSD-3-Clause
// Assembles the figures of the HTML page.
#include "profiles/render/page_data.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "profiles/record/waiting.hpp"
#include "profiles/render/page_arrivals.hpp"
#include "profiles/render/rank_table.hpp"

namespace latecomer::cli {
namespace {

/// Derived: four values of 2 bytes per cell make 2.7 MB of base64 at 1,000 sites, and a page is at most 2,000 pixels
/// wide.
constexpr std::int64_t kCells = 250'000, kFewestColumns = 250, kMostColumns = 1000;
/// The ranks that the details of a site list.
constexpr std::size_t kLatestListed = 8;

Json histogram(const analysis::Histogram& h) {
  const auto median = h.bounds(0.5);
  Json out = {{"mean", rounded(h.mean)},
              {"max", rounded(h.max)},
              {"median", {rounded(median.first), rounded(median.second)}},
              {"most", rounded(h.bounds(0.9).second)},
              {"counts", h.counts},
              {"edges", Json::array()}};
  for (const double edge : h.edges) out["edges"].push_back(rounded(edge));
  return out;
}

Json latest_ranks(const Site& site) {
  Json out = Json::array();
  for (const analysis::RankRow* r : site.latest(kLatestListed))
    out.push_back({r->name(), rounded(r->offset), rounded(r->stddev), r->last, rounded(r->awaited)});
  return out;
}

Json site_data(const Site& s) {
  Json frames = Json::array(), dispatch = frames, decisions = frames;
  for (const analysis::Frame& frame : s.frames) frames.push_back(place(frame));
  for (const analysis::Dispatch& d : s.dispatch)
    dispatch.push_back({d.algorithm, d.calls, rounded(d.elapsed), rounded(d.after_last)});
  for (const analysis::Decision& d : s.decisions) {
    const auto time = [](const std::optional<double>& ns) { return ns ? rounded(*ns) : Json(nullptr); };
    decisions.push_back(
        {d.bytes, d.calls, d.algorithm, d.reason, time(d.predicted), time(d.measured), time(d.native_measured)});
  }
  const auto op = core::find_collective(s.op);
  return {{"id", s.id},
          {"op", s.op},
          {"frames", frames},
          {"function", s.frames.front().name.function},
          {"size", s.comm_size},
          {"calls", s.calls},
          {"seen", s.patterns},
          {"rested", s.rested},
          {"divergent", s.divergent},
          {"bytes", s.bytes ? rounded(*s.bytes) : Json(nullptr)},
          {"waited", rounded(s.waited)},
          {"last", s.last_ranks(2)},
          {"waiting", op ? std::string(profiles::waiting_text(*op)) : ""},
          {"imbalance", histogram(s.first_to_last)},
          {"after", histogram(s.after_last_histogram)},
          {"elapsed", histogram(s.elapsed)},
          {"latest", latest_ranks(s)},
          {"dispatch", dispatch},
          {"decisions", decisions}};
}

Json shares(const analysis::Figures& row) {
  Json out = Json::array();
  for (const auto& column : analysis::kTimeColumns)
    out.push_back(row.wall > 0 ? rounded(row.times.*column.value / row.wall) : Json(0));
  return out;
}

/// [[title, share], ...], the largest first; null: no cause is known.
Json causes(const std::optional<analysis::Causes>& shares) {
  if (!shares) return nullptr;
  std::vector<std::pair<std::string_view, double>> named;
  for (std::size_t k = 0; k < shares->size(); ++k)
    if ((*shares)[k] > 0) named.emplace_back(analysis::kCauseNames[k].title, (*shares)[k]);
  std::ranges::stable_sort(named, [](const auto& a, const auto& b) { return a.second > b.second; });
  Json out = Json::array();
  for (const auto& [title, share] : named) out.push_back({title, rounded(share)});
  return out;
}

Json tables(const analysis::Analysis& analysis) {
  const auto waited = [](const analysis::Figures& row) { return rounded(row.wall > 0 ? row.waited / row.wall : 0); };
  Json ranks = Json::array(), hosts = Json::array(), columns = Json::array();
  for (const auto& column : analysis::kTimeColumns) columns.push_back({column.title, column.meaning});
  bool measured = false;
  for (const analysis::Rank& row : analysis.ranks()) {
    ranks.push_back({row.first, row.name(), row.host, shares(row), waited(row), rounded(row.awaited), row.last,
                     row.late ? rounded(*row.late) : Json(nullptr),
                     row.is_late() ? causes(row.causes) : Json(nullptr)});
    measured = measured || row.wall > 0;
  }
  for (const analysis::Host& row : analysis.hosts())
    hosts.push_back({row.name, row.ranks, shares(row), waited(row), rounded(row.awaited), row.last});
  Json out = {{"columns", columns},
              {"ranks", ranks},
              {"ranks_per_row", analysis.ranks_per_row()},
              {"ranks_per_sum", analysis.ranks_per_sum()},
              {"measured", measured},
              {"hosts", hosts}};
  if (const analysis::Efficiency& e = analysis.efficiency(); e.load_balance > 0) out["efficiency"] = efficiency_json(e);
  return out;
}

/// Per site the ranks in columns. A column holds the largest value of the rows of ranks in it. A mean offset is that of
/// the row; the other values are sums over the calls and the ranks of the row.
Json heat_map(const std::vector<const Site*>& sites, std::int64_t per, std::int64_t ranks) {
  const std::int64_t most = std::clamp(kCells / std::max<std::int64_t>(1, static_cast<std::int64_t>(sites.size())),
                                       kFewestColumns, kMostColumns);
  const std::int64_t rows = (ranks + per - 1) / per, wide = (rows + most - 1) / most * per,
                     columns = (ranks + wide - 1) / wide;
  constexpr std::pair<const char*, float analysis::RankCell::*> kLayers[] = {
      {"offset", &analysis::RankCell::offset_ns},
      {"waited", &analysis::RankCell::waited_ns},
      {"awaited", &analysis::RankCell::awaited_ns},
      {"last", &analysis::RankCell::last}};
  Json out = {{"columns", columns}, {"ranks_per_column", wide}, {"ranks", ranks}};
  for (const auto& [name, field] : kLayers) {
    std::vector<double> values(sites.size() * static_cast<std::size_t>(columns), kNoValue);
    for (std::size_t s = 0; s < sites.size(); ++s)
      for (const analysis::RankCell& r : sites[s]->cells)
        if (r.rank >= 0 && r.rank < ranks) {
          double& cell = values[s * static_cast<std::size_t>(columns) + static_cast<std::size_t>(r.rank / wide)];
          cell = std::max(cell, static_cast<double>(r.*field));
        }
    out[name] = packed(values);
  }
  return out;
}

}  // namespace

Json rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  const double short_value = std::strtod(text, nullptr);
  if (std::abs(short_value) < 1e15 && short_value == std::floor(short_value))
    return static_cast<std::int64_t>(short_value);
  return short_value;
}

std::string packed(const std::vector<double>& values) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  bytes.reserve(2 * values.size());
  for (const double v : values) {
    const double code = v < 0 ? 0 : std::min(65535.0, 1 + std::round(1280 * std::log2(1 + v)));
    const auto c = static_cast<unsigned>(code);
    bytes += static_cast<char>(c & 255), bytes += static_cast<char>(c >> 8);
  }
  std::string out;
  out.reserve(bytes.size() / 3 * 4 + 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned three = 0;
    for (std::size_t k = 0; k < 3; ++k)
      three = three << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : kDigits[three >> (18 - 6 * k) & 63];
  }
  return out;
}

Json page_data(const Profile& profile) {
  constexpr std::int64_t kMostRanks = 1'000'000'000;
  const std::int64_t ranks = std::clamp<std::int64_t>(profile.job.ranks, 1, kMostRanks);
  Json sites = Json::array();
  std::vector<const Site*> shown;
  std::size_t alone = 0;
  for (const Site& s : profile.sites) {
    if (s.comm_size == 1) ++alone;
    else sites.push_back(site_data(s)), shown.push_back(&s);
  }
  return {{"rank_time_ns", rounded(profile.job.rank_time())},
          {"sites", sites},
          {"sites_alone", alone},
          {"heat", heat_map(shown, profile.analysis.ranks_per_row(), ranks)},
          {"tables", tables(profile.analysis)},
          {"arrivals", page_arrivals(profile)}};
}

}  // namespace latecomer::cli

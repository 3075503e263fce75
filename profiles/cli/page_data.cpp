// SPDX-License-Identifier: BSD-3-Clause
// Assembles the figures of the HTML page.
#include "profiles/cli/page_data.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "profiles/cli/efficiency.hpp"
#include "profiles/cli/page_arrivals.hpp"
#include "profiles/cli/rank_rows.hpp"
#include "profiles/cli/site_table.hpp"
#include "profiles/cli/verdict.hpp"
#include "profiles/waiting.hpp"

namespace latecomer::cli {
namespace {

/// Derived: four values of 2 bytes per cell make 2.7 MB of base64 at 1,000 sites, and a page is at most 2,000 pixels
/// wide.
constexpr std::int64_t kCells = 250'000, kFewestColumns = 250, kMostColumns = 1000;
/// The ranks that the details of a site list.
constexpr std::size_t kLatestListed = 8;
Json histogram(const Json& h) {
  Json out = Json::object();
  for (const char* key : {"mean", "p50", "p90", "max"}) out[key] = rounded(h[key]);
  out["counts"] = h["counts"];
  out["edges"] = Json::array();
  for (const Json& edge : h["edges"]) out["edges"].push_back(rounded(edge));
  return out;
}

Json latest_ranks(const Json& site) {
  std::vector<const Json*> rows;
  for (const Json& r : site["ranks"]) rows.push_back(&r);
  std::stable_sort(rows.begin(), rows.end(), [](const Json* a, const Json* b) {
    return (*a)["mean_offset_ns"].get<double>() > (*b)["mean_offset_ns"].get<double>();
  });
  rows.resize(std::min(rows.size(), kLatestListed));
  Json out = Json::array();
  for (const Json* r : rows)
    out.push_back({row_name(*r), rounded((*r)["mean_offset_ns"]), rounded((*r)["stddev_ns"]),
                   (*r)["last_count"].get<double>(), rounded(r->value("awaited_ns", 0.0))});
  return out;
}

Json site_data(const Json& s) {
  Json frames = Json::array(), dispatch = frames, decisions = frames;
  for (const Json& frame : s["frames"]) frames.push_back(place(frame));
  for (const auto& [name, d] : s["dispatch"].items())
    dispatch.push_back(
        {name, d["calls"].get<double>(), rounded(d["mean_elapsed_ns"]), rounded(d["mean_after_last_ns"])});
  for (const Json& d : s.value("decisions", Json::array())) {
    const auto time = [&](const char* key) { return d[key].is_null() ? Json(nullptr) : rounded(d[key]); };
    decisions.push_back({d["bytes"].get<double>(), d["calls"].get<double>(), d["algorithm"], d["reason"],
                         time("predicted_ns"), time("measured_ns"), time("native_measured_ns")});
  }
  const Json& function = s["frames"][0]["function"];
  const auto op = core::find_collective(s["op"].get<std::string>());
  return {{"id", s["id"]},
          {"op", s["op"]},
          {"frames", frames},
          {"function", function.is_null() ? Json("") : function},
          {"size", s["comm_size"]},
          {"calls", s["calls"]},
          {"seen", s["patterns"]},
          {"rested", s.value("rested", 0.0)},
          {"divergent", s["divergent_calls"]},
          {"bytes", s["bytes"].is_null() ? Json(nullptr) : rounded(s["bytes"]["mean"])},
          {"waited", rounded(total_wait(s))},
          {"last", last_ranks(s, 2)},
          {"waiting", op ? std::string(profiles::waiting_text(*op)) : ""},
          {"imbalance", histogram(s["imbalance_ns"])},
          {"after", histogram(s["after_last_ns"])},
          {"elapsed", histogram(s["elapsed_ns"])},
          {"latest", latest_ranks(s)},
          {"dispatch", dispatch},
          {"decisions", decisions}};
}

Json shares(const TimeRow& row) {
  Json out = Json::array();
  for (const double part : row.parts) out.push_back(row.wall > 0 ? rounded(part / row.wall) : Json(0));
  return out;
}

Json tables(const Json& profile, std::int64_t per) {
  std::map<long, Json> causes;
  for (const Json& r : ranks_json(profile)) causes[r["rank"].get<long>() / per * per] = r["causes"];
  const std::vector<TimeRow> rows = rank_rows(profile);
  const auto waited = [](const TimeRow& row) { return rounded(row.wall > 0 ? row.waited / row.wall : 0); };
  Json ranks = Json::array(), hosts = Json::array();
  bool measured = false;
  for (const TimeRow& row : rows) {
    ranks.push_back({row.first, row.name, row.host, shares(row), waited(row), rounded(row.awaited), row.last,
                     row.late ? rounded(*row.late) : Json(nullptr), causes[row.first]});
    measured = measured || row.wall > 0;
  }
  for (const TimeRow& row : host_rows(rows))
    hosts.push_back({row.host, row.ranks, shares(row), waited(row), rounded(row.awaited), row.last});
  Json out = {{"ranks", ranks}, {"ranks_per_row", per}, {"measured", measured}, {"hosts", hosts}};
  if (const Efficiency e = Efficiencies(profile).of_host(""); e.load_balance > 0)
    out["efficiency"] = efficiency_json(e);
  return out;
}

/// Per site the ranks in columns. A column holds the largest value of the rows of ranks in it. A mean offset is that of
/// the row; the other values are sums over the calls and the ranks of the row.
Json heat_map(const Json& sites, const std::vector<std::vector<RankCell>>& cells, std::int64_t per,
              std::int64_t ranks) {
  const std::int64_t most = std::clamp(kCells / std::max<std::int64_t>(1, static_cast<std::int64_t>(sites.size())),
                                       kFewestColumns, kMostColumns);
  const std::int64_t rows = (ranks + per - 1) / per, wide = (rows + most - 1) / most * per,
                     columns = (ranks + wide - 1) / wide;
  constexpr std::pair<const char*, float RankCell::*> kLayers[] = {{"offset", &RankCell::offset_ns},
                                                                   {"waited", &RankCell::waited_ns},
                                                                   {"awaited", &RankCell::awaited_ns},
                                                                   {"last", &RankCell::last}};
  Json out = {{"columns", columns}, {"ranks_per_column", wide}, {"ranks", ranks}};
  for (const auto& [name, field] : kLayers) {
    std::vector<double> values(sites.size() * static_cast<std::size_t>(columns), kNoValue);
    for (std::size_t s = 0; s < sites.size(); ++s)
      for (const RankCell& r : cells[sites[s]["cells"].get<std::size_t>()])
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

Json page_data(const Json& profile, const std::vector<std::vector<RankCell>>& cells, const std::string& file) {
  constexpr std::int64_t kMostRanks = 1'000'000'000;
  const std::int64_t ranks = std::clamp<std::int64_t>(profile["job"]["ranks"].get<std::int64_t>(), 1, kMostRanks);
  std::int64_t per = 1;
  for (const auto& rows : cells)
    for (const RankCell& r : rows) per = std::max(per, std::min(r.ranks, ranks));
  Json sites = Json::array(), shown = Json::array();
  std::size_t alone = 0;
  for (const Json& s : profile["sites"]) {
    if (s["comm_size"].get<std::int64_t>() == 1) ++alone;
    else sites.push_back(site_data(s)), shown.push_back({{"cells", s["cells"]}});
  }
  return {{"rank_time_ns", rounded(std::max(1.0, rank_time(profile)))},
          {"sites", sites},
          {"sites_alone", alone},
          {"heat", heat_map(shown, cells, per, ranks)},
          {"tables", tables(profile, per)},
          {"arrivals", page_arrivals(profile, file)}};
}

}  // namespace latecomer::cli

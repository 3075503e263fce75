// SPDX-License-Identifier: BSD-3-Clause
// Assembles the figures of the HTML page.
#include "profiles/render/page_data.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "profiles/analysis/callers.hpp"
#include "profiles/analysis/run_shares.hpp"
#include "profiles/record/waiting.hpp"
#include "profiles/render/communicator_table.hpp"
#include "profiles/render/page_arrivals.hpp"
#include "profiles/render/rank_table.hpp"
#include "profiles/render/timed_table.hpp"

namespace latecomer::profiles {
namespace {

/// Derived: four values of 2 bytes per cell make 2.7 MB of base64 at 1,000 sites, and a page is at most 2,000 pixels
/// wide.
constexpr std::int64_t kCells = 250'000, kFewestColumns = 250, kMostColumns = 1000;
/// The ranks that the details of a site list.
constexpr std::size_t kLatestListed = 8;
/// Derived: two bars per pixel on a page of 300 pixels, one on a page of 600.
constexpr std::size_t kMostBars = 500;
/// The communicators that the page lists.
constexpr std::size_t kMostCommunicators = 1000;

Json share_json(Share part) { return part.known() ? rounded(part.value()) : Json(nullptr); }
Json share_json(double part, double whole) { return share_json(Share::of(part, whole)); }

/// Texts that many sites share, each once.
class Texts {
 public:
  std::size_t number(const std::string& text) {
    const auto [at, added] = numbers_.try_emplace(text, numbers_.size());
    if (added) all_.push_back(text);
    return at->second;
  }
  const Json& all() const { return all_; }

 private:
  std::map<std::string, std::size_t> numbers_;
  Json all_ = Json::array();
};

Json histogram(const analysis::HistogramFigures& h) {
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

/// Appends [level, number of the place, share of the site's calls, share of its waits], a caller before its own
/// callers. [level, -1, n]: n more callers.
void add_callers(Json& out, const Site& site, const std::vector<analysis::CallerNode>& callers, std::size_t level,
                 Texts& places) {
  for (std::size_t i = 0; i < callers.size(); ++i) {
    if (i == analysis::kMostCallers) {
      out.push_back({level, -1, callers.size() - i});
      return;
    }
    const analysis::CallFigures& f = callers[i].figures;
    out.push_back(
        {level, places.number(callers[i].place()), share_json(f.calls, site.calls), share_json(f.waited, site.waited)});
    add_callers(out, site, callers[i].callers, level + 1, places);
  }
}

Json callers_data(const Site& site, Texts& places) {
  Json out = Json::array();
  add_callers(out, site, callers_of(site), 0, places);
  return out;
}

Json site_data(const Site& s, Texts& places, double rank_time) {
  Json frames = Json::array(), dispatch = frames, decisions = frames;
  for (const analysis::NamedFrame& frame : s.frames) frames.push_back(place_of(frame));
  for (const analysis::Dispatch& d : s.dispatch)
    dispatch.push_back({d.algorithm, d.calls, rounded(d.elapsed), rounded(d.after_last)});
  for (const analysis::DecisionFigures& d : s.decisions) {
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
          {"share", share_json(s.waited, rank_time)},
          {"last", s.comes_last(2)},
          {"waiting", op ? std::string(waiting_text(*op)) : ""},
          {"imbalance", histogram(s.first_to_last)},
          {"after", histogram(s.after_last_histogram)},
          {"elapsed", histogram(s.elapsed)},
          {"callers", callers_data(s, places)},
          {"latest", latest_ranks(s)},
          {"dispatch", dispatch},
          {"decisions", decisions}};
}

Json shares(const analysis::Figures& row) {
  Json out = Json::array();
  for (const auto& column : analysis::kTimeColumns)
    out.push_back(row.wall > 0 ? share_json(row.times.*column.value, row.wall) : Json(0));
  return out;
}

/// The parts of the time of each rank, or of neighbouring rows of ranks if these are more than kMostBars. A bar is
/// [name, host, shares of the row that others waited for longest, shares of all if it has several rows]. null: no data.
/// The whole is null if no rank has a time.
Json time_bars(const analysis::Analysis& analysis, std::int64_t ranks) {
  const std::int64_t per = analysis.ranks_per_row(), rows = (ranks + per - 1) / per,
                     most = static_cast<std::int64_t>(kMostBars), wide = (rows + most - 1) / most * per;
  struct Bar {
    const analysis::RankFigures* longest = nullptr;
    analysis::Figures sum;
  };
  std::vector<Bar> bars(static_cast<std::size_t>((ranks + wide - 1) / wide));
  bool measured = false;
  for (const analysis::RankFigures& row : analysis.ranks()) {
    if (row.wall <= 0) continue;
    Bar& bar = bars[static_cast<std::size_t>(row.first / wide)];
    if (!bar.longest || row.awaited > bar.longest->awaited) bar.longest = &row;
    bar.sum.wall += row.wall;
    bar.sum.waited += row.waited;
    bar.sum.times.add(row.times);
    measured = true;
  }
  if (!measured) return nullptr;
  const auto shares = [](const analysis::Figures& figures) {
    Json out = Json::array();
    for (const double share : analysis::time_shares(figures)) out.push_back(rounded(share));
    return out;
  };
  Json out = Json::array();
  for (const Bar& bar : bars) {
    out.push_back(bar.longest ? Json({bar.longest->name(), bar.longest->host, shares(*bar.longest)}) : Json(nullptr));
    if (bar.longest && wide > per) out.back().push_back(shares(bar.sum));
  }
  return {{"ranks_per_bar", wide}, {"ranks_per_row", per}, {"bars", out}};
}

/// [title, meaning] of each part. Waits are the third last, and the rest of the time in collectives comes next.
Json part_titles() {
  Json out = Json::array();
  for (const auto& part : analysis::time_parts()) out.push_back({part.title, part.meaning});
  return out;
}

/// Rows with the columns of kCommunicatorTitles.
Json communicators(const Profile& profile) {
  Json rows = Json::array();
  const std::vector<analysis::Communicator> all = communicators_of(profile);
  for (std::size_t i = 0; i < std::min(all.size(), kMostCommunicators); ++i) {
    const analysis::Communicator& c = all[i];
    rows.push_back({c.ranks, c.calls, rounded(c.waited), share_json(c.share), rounded(c.imbalance),
                    rounded(c.after_last), members_of(c)});
  }
  return {{"titles", kCommunicatorTitles}, {"rows", rows}, {"all", all.size()}};
}

/// Rows with the columns of kTimedTitles.
Json timed_sites(const Profile& profile, const ShownSites& shown) {
  Json rows = Json::array();
  for (const TimedRow& row : timed_rows(profile, shown.timed))
    rows.push_back({row.call, rounded(row.calls), row.messages > 0 ? rounded(row.bytes) : Json(nullptr),
                    rounded(row.time), share_json(row.share), row.most_on, row.waits_for, row.kind, row.place});
  return {{"titles", kTimedTitles}, {"rows", rows}};
}

/// Rows and columns of ranks; null: no message between ranks is known.
Json pairs(const Profile& profile, std::int64_t ranks) {
  const std::int64_t per = profile.pairs.per_row, rows = (ranks + per - 1) / per;
  constexpr std::int64_t kMost = 256;  // as the profile has
  if (profile.pairs.pairs.empty() || rows > kMost) return nullptr;
  std::vector<double> sent(static_cast<std::size_t>(rows * rows), -1), waited = sent, messages = sent;
  for (const analysis::PairFigures& pair : profile.pairs.pairs) {
    if (pair.rank < 0 || pair.rank >= ranks || pair.peer < 0 || pair.peer >= ranks) continue;
    const auto at = static_cast<std::size_t>(pair.rank / per * rows + pair.peer / per);
    sent[at] = pair.bytes;
    messages[at] = static_cast<double>(pair.messages);
    waited[at] = pair.waited;
  }
  return {{"rows", rows},
          {"ranks_per_row", per},
          {"bytes", packed(sent)},
          {"messages", packed(messages)},
          {"waited", packed(waited)}};
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

/// The functions of each rank with the most samples, as [rank, samples, [[name, samples], ...]].
Json functions(const Profile& profile) {
  constexpr std::size_t kMost = 8;  // chosen: the details of a rank list them
  std::map<long, std::map<std::string, double>> ranks;
  for (const analysis::CodeFigures::Samples& one : profile.code.samples) {
    if (one.others) continue;  // the bar is the time of the thread that started MPI
    const std::string name = analysis::short_name(analysis::function_of(profile, one));
    for (const auto& [rank, samples] : one.rows) ranks[rank][name] += samples;
  }
  Json out = Json::array();
  for (const auto& [rank, all] : ranks) {
    std::vector<std::pair<double, std::string>> order;
    double sum = 0;
    for (const auto& [name, samples] : all) {
      order.emplace_back(samples, name);
      sum += samples;
    }
    std::ranges::stable_sort(order, std::greater(), [](const auto& one) { return one.first; });
    if (order.size() > kMost) order.resize(kMost);
    Json rows = Json::array();
    for (const auto& [samples, name] : order) rows.push_back({name, samples});
    out.push_back({rank, sum, rows});
  }
  return out;
}

Json tables(const analysis::Analysis& analysis) {
  const auto waited = [](const analysis::Figures& row) {
    return row.wall > 0 ? share_json(row.waited, row.covered) : Json(0);
  };
  Json ranks = Json::array(), hosts = Json::array(), columns = Json::array();
  for (const auto& column : analysis::kTimeColumns) columns.push_back({column.title, column.meaning});
  bool measured = false;
  for (const analysis::RankFigures& row : analysis.ranks()) {
    ranks.push_back({row.first, row.name(), row.host, shares(row), waited(row), rounded(row.awaited), row.last,
                     row.late ? rounded(*row.late) : Json(nullptr),
                     row.is_late() ? causes(row.causes) : Json(nullptr)});
    measured = measured || row.wall > 0;
  }
  for (const analysis::HostFigures& row : analysis.hosts())
    hosts.push_back({row.name, row.ranks, shares(row), waited(row), rounded(row.awaited), row.last});
  Json out = {{"columns", columns},
              {"waits", {analysis::kWaits.title, analysis::kWaits.meaning}},
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
    bytes += static_cast<char>(c & 255);
    bytes += static_cast<char>(c >> 8);
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

Json page_data(const Profile& profile, const ShownSites& shown) {
  constexpr std::int64_t kMostRanks = 1'000'000'000;
  const std::int64_t ranks = std::clamp<std::int64_t>(profile.job.ranks, 1, kMostRanks);
  Json sites = Json::array();
  std::vector<const Site*> rows;
  Texts places;
  std::size_t alone = 0;
  for (const Site* s : shown.collectives) {
    if (s->comm_size == 1) ++alone;
    else {
      sites.push_back(site_data(*s, places, profile.job.rank_time()));
      rows.push_back(s);
    }
  }
  return {{"sites", sites},
          {"places", places.all()},
          {"parts", part_titles()},
          {"time", time_bars(profile.analysis, ranks)},
          {"communicators", communicators(profile)},
          {"timed", timed_sites(profile, shown)},
          {"functions", functions(profile)},
          {"pairs", pairs(profile, ranks)},
          {"sites_alone", alone},
          {"heat", heat_map(rows, profile.analysis.ranks_per_row(), ranks)},
          {"tables", tables(profile.analysis)},
          {"arrivals", page_arrivals(profile)}};
}

}  // namespace latecomer::profiles

// SPDX-License-Identifier: BSD-3-Clause
// Reads profiles.
#include "profiles/format/reader.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/base/text.hpp"
#include "core/policy/policy.hpp"
#include "profiles/analysis/findings.hpp"
#include "profiles/base/errors.hpp"
#include "profiles/base/json.hpp"
#include "profiles/format/last_state.hpp"
#include "profiles/format/profile_keys.hpp"
#include "profiles/format/redact.hpp"
#include "profiles/format/shape.hpp"
#include "profiles/symbols/names.hpp"

namespace latecomer::profiles {

using analysis::RankRow;

namespace {

double number_in(const Json& object, std::string_view key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

/// The rows that tables show, and those of the ranks for which they waited most, so that a chain of waits can be
/// followed.
std::vector<RankRow> few_rows(std::vector<RankRow>&& rows) {
  if (rows.size() <= kRowChoices * kRowsKept) return std::move(rows);
  std::vector<std::size_t> all(rows.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::set<std::size_t> kept;
  for (const auto field : {&RankRow::last, &RankRow::offset, &RankRow::awaited}) {
    std::partial_sort(all.begin(), all.begin() + kRowsKept, all.end(), [&](auto x, auto y) {
      return std::pair(-(rows[x].*field), x) < std::pair(-(rows[y].*field), y);
    });
    kept.insert(all.begin(), all.begin() + kRowsKept);
  }
  std::vector<std::size_t> from(kept.begin(), kept.end());
  for (std::size_t i = 0; i < from.size() && kept.size() < 2 * kRowChoices * kRowsKept; ++i) {
    const auto& peers = rows[from[i]].before.peers;
    if (peers.empty()) continue;
    const auto after = std::ranges::upper_bound(rows, peers.front().rank, {}, &RankRow::rank);
    if (after == rows.begin()) continue;
    if (const auto at = static_cast<std::size_t>(after - rows.begin() - 1); kept.insert(at).second) from.push_back(at);
  }
  std::vector<RankRow> out;
  out.reserve(kept.size());
  for (const std::size_t i : kept) out.push_back(std::move(rows[i]));
  return out;
}

/// In profiles of earlier versions each sample stands for one interval.
double stand_for(double samples, double written) { return written > 0 ? written : samples; }

std::vector<analysis::IntervalFigures::Peer> peers_of(const Json& object) {
  std::vector<analysis::IntervalFigures::Peer> out;
  if (const auto peers = object.find("waits_for"); peers != object.end() && peers->is_array())
    for (const Json& peer : *peers)
      if (peer.is_object()) out.push_back(kWaitForKeys.as<analysis::IntervalFigures::Peer>(peer));
  return out;
}

/// The figures of the object `before` of a site, a row or a caller.
analysis::IntervalFigures intervals_of(const Json& before) {
  auto out = kIntervalKeys.as<analysis::IntervalFigures>(before);
  out.stand_for = stand_for(out.samples, out.stand_for);
  out.peers = peers_of(before);
  return out;
}

/// One row of `awaited`.
RankRow row_of(const Json& row) {
  auto out = kRankRowKeys.as<RankRow>(row);
  out.ranks = std::max(1L, out.ranks);
  if (const auto before = row.find("before"); before != row.end()) out.before = intervals_of(*before);
  return out;
}

/// The rows of ranks of one site. A large profile consists almost entirely of such rows, with histograms that no
/// command needs. So rows are taken one at a time, without their histograms.
std::vector<RankRow> rows_of(const WholeProfile& whole, std::size_t site) {
  constexpr int kAbove = 2, kInRow = 2;  // depths: the profile and `rank_rows`; a list of rows, and a row
  using Event = Json::parse_event_t;
  std::vector<RankRow> rows;
  bool good = true, skips = false;
  const auto take = [&](int depth, Event event, const Json& value) {
    if (event == Event::key && depth == kInRow) skips = value == "histogram";
    if (skips && depth >= kInRow) return false;
    if (event == Event::object_start || event == Event::array_start) good = good && depth + kAbove < core::kMostNested;
    if (value.is_number()) good = good && is_sane(value.get<double>());
    if (event != Event::object_end || depth != 1) return good;  // what is nested too deep is not made
    if (RankRow row = row_of(value); row.rank >= 0) rows.push_back(std::move(row));
    return false;
  };
  if (Json::parse(whole.rows()[site], take, false).is_discarded() || !good) whole.refuse("is not a latecomer profile");
  return rows;
}

/// Gives the site its rows of ranks, and takes the figures of all rows from them. The site keeps few rows.
void take_rows(Site& site, std::vector<RankRow>&& rows, const Wanted& wanted, analysis::Analysis& analysis) {
  std::ranges::stable_sort(rows, {}, &RankRow::rank);
  site.rows = rows.size();
  for (const RankRow& row : rows) {
    if (wanted.offsets) {
      site.offsets_ns.push_back(row.offset);
      site.stddevs_ns.push_back(row.stddev);
    }
    if (wanted.cells)
      site.cells.push_back({row.rank, row.ranks, static_cast<float>(row.offset), static_cast<float>(row.waited),
                            static_cast<float>(row.awaited), static_cast<float>(row.last)});
  }
  site.ranks = std::move(rows);
  site.baseline = analysis::Baseline(site);
  analysis.add(site, site.baseline);
  site.ranks = few_rows(std::move(site.ranks));
}

std::vector<analysis::ProcessFigures> processes_of(const Json& profile) {
  std::vector<analysis::ProcessFigures> out;
  for (const Json& p : profile.value("processes", Json::array())) {
    analysis::ProcessFigures& one = out.emplace_back();
    kProcessKeys.read(p, one);
    kProcessKeys.read(p, one.times);
    kRunKeys.read(p, one);
    kRunKeys.read(p, one.times);
    if (one.wall <= 0) one.times.init = one.times.end = 0;  // the parts between the ends are not known
    one.times.ends = one.times.init + one.times.end;
    one.wall += one.times.ends;
    if (one.covered > 0) one.covered += one.times.init;
    one.peers = peers_of(p);
    if (const auto sampling = p.find("sampling"); sampling != p.end()) {
      kSamplingKeys.read(*sampling, one.sampling);
      if (const auto others = sampling->find("other_threads"); others != sampling->end())
        kOtherSamplingKeys.read(*others, one.other_sampling);
    }
    for (const Json& row : p.value("threads", Json::array())) {
      kThreadKeys.read(row, one.threads.emplace_back());
      kThreadKeys.read(row, one.threads.back().times);
    }
  }
  return out;
}

analysis::CodeFigures code_of(const Json& code) {
  analysis::CodeFigures out;
  using Figures = analysis::CodeFigures;
  for (const Json& one : code["places"]) {
    out.places.push_back(kPlaceKeys.as<Figures::Place>(one));
    out.places.back().frame = frame_of(one["frame"]);
  }
  for (const Json& one : code["samples"]) {
    Figures::Samples& to = out.samples.emplace_back(kSamplesKeys.as<Figures::Samples>(one));
    if (to.place && *to.place >= out.places.size()) to.place.reset();  // in a damaged profile only
    for (const Json& row : one["by_rank"]) to.rows.push_back(kRankSamplesKeys.as<Figures::Samples::Row>(row));
  }
  for (const Json& one : code["stretches"]) {
    Figures::Stretch& to = out.stretches.emplace_back(kStretchesKeys.as<Figures::Stretch>(one));
    for (const Json& row : one["by_rank"]) to.rows.push_back(kRankStretchesKeys.as<Figures::Stretch::Row>(row));
  }
  return out;
}

std::vector<analysis::HostLoadFigures> loads_of(const Json& profile) {
  std::vector<analysis::HostLoadFigures> out;
  for (const Json& host : profile.value("hosts", Json::array())) {
    const auto load = host.find("load");
    if (load == host.end() || load->is_null()) continue;
    out.push_back(kHostLoadKeys.as<analysis::HostLoadFigures>(*load));
    out.back().host = host["host"].get<std::string>();
  }
  return out;
}

std::vector<analysis::RankTotals> sums_of(const Json& profile) {
  std::vector<analysis::RankTotals> out;
  const auto sums = profile.find("rank_sums");
  if (sums == profile.end()) return out;
  for (const Json& one : *sums) out.push_back(kRankSumKeys.as<analysis::RankTotals>(one));
  return out;
}

analysis::TimedCalls timed_site_of(const Json& json) {
  auto out = kTimedHeadKeys.as<analysis::TimedCalls>(json);
  for (const Json& frame : json["frames"]) out.frames.push_back(frame_of(frame));
  kTimedKeys.read(json, out);
  kLengthsKeys.read(json, out);
  if (const auto kinds = json.find("kinds"); kinds != json.end()) kMessageKindKeys.read(*kinds, out.kinds);
  for (const Json& row : json["by_rank"]) {
    analysis::TimedCalls::Row& to = out.rows.emplace_back(kTimedRowKeys.as<analysis::TimedCalls::Row>(row));
    kTimedKeys.read(row, to);
    to.peers = peers_of(row);
  }
  return out;
}

analysis::PairsFigures pairs_of(const Json& json) {
  analysis::PairsFigures out;
  out.per_row = std::max(1L, rank_in(number_in(json, "ranks_per_row")));
  for (const Json& row : json["rows"]) out.pairs.push_back(kPairKeys.as<analysis::PairFigures>(row));
  return out;
}

analysis::ProfileJob::Cost cost_of(const Json& profile, const Json& cost) {
  analysis::ProfileJob::Cost out;
  double later = 0, most = 0, time = 0;
  for (const auto& [key, value] : cost.items()) {
    if (key == "share" || key == "start_ns") continue;
    const auto part = value.get<double>();
    later += part;
    if (part > most) {
      most = part;
      out.most = key;
    }
  }
  const double start = number_in(cost, "start_ns");
  const Json& processes = profile["processes"];
  double unlogged = 0;
  for (const Json& process : processes) {
    time += number_in(process, "wall_ns");
    unlogged += number_in(process, "unlogged_ns");
  }
  out.unlogged = Share::of(unlogged, time);
  out.start = start / std::max(1.0, static_cast<double>(processes.size()));
  out.later = Share::of(later, time - start);
  return out;
}

analysis::ProfileJob job_of(const Json& profile) {
  const Json& job = profile["job"];
  auto out = kJobKeys.as<analysis::ProfileJob>(job);
  out.hosts = job["hosts"].size();
  if (const Json reach = job.value("snapshots", Json(nullptr)); !reach.is_null()) kReachKeys.read(reach, out);
  for (double* seconds : {&out.wall, &out.first_end, &out.last_end, &out.covered}) *seconds *= 1e9;
  if (const Json promised = job.value("promised", Json(nullptr)); !promised.is_null())
    out.promised = kPromisedKeys.as<core::Promised>(promised);
  if (const Json history = job.value("history", Json(nullptr)); !history.is_null())
    kHistoryKeys.read(history, out.history);
  if (const Json cost = profile.value("cost", Json(nullptr)); !cost.is_null()) out.cost = cost_of(profile, cost);
  if (const Json first = job.value("first_call", Json(nullptr)); !first.is_null() && !first["rank"].is_null())
    kFirstCallKeys.read(first, out.first_call);
  return out;
}

/// The policy's parser reads the figures, so that a profile and a policy mean the same.
std::optional<core::Network> network_of(const Json& profile) {
  const Json network = profile["job"].value("network", Json(nullptr));
  if (network.is_null()) return {};
  const auto read = core::parse_policy(json_text(Json({{"version", 1}, {"network", network}})));
  if (!read.ok()) return {};
  return read.policy.network;
}

std::vector<std::string> hosts_of_ranks(const Json& profile) {
  std::vector<std::string> out(profile["job"]["ranks"].get<std::size_t>());
  for (const Json& one : profile["clock"])
    if (const auto rank = one["rank"].get<std::size_t>(); rank < out.size()) out[rank] = one["host"].get<std::string>();
  return out;
}

analysis::HistogramFigures histogram_of(const Json& json) {
  analysis::HistogramFigures out;
  out.edges = json["edges"].get<std::vector<double>>();
  out.counts = json["counts"].get<std::vector<double>>();
  out.mean = json["mean"].get<double>();
  out.max = json["max"].get<double>();
  return out;
}

analysis::DecisionFigures decision_of(const Json& json) {
  auto out = kDecisionKeys.as<analysis::DecisionFigures>(json);
  out.algorithm = json["algorithm"].get<std::string>();
  return out;
}

analysis::CallerFigures caller_of(const Json& json) {
  auto out = kCallerKeys.as<analysis::CallerFigures>(json);
  for (const Json& frame : json["frames"]) out.frames.push_back(frame_of(frame));
  if (!json["bytes"].is_null()) kBytesKeys.read(json["bytes"], out);
  if (const auto before = json.find("before"); before != json.end()) out.before = intervals_of(*before);
  for (const Json& row : json["awaited"]) out.ranks.push_back(row_of(row));
  return out;
}

/// A site without its rows of ranks. The profile has the shape of the schema.
Site site_of(const Json& json) {
  Site site = kSiteKeys.as<Site>(json);
  kSiteSumKeys.read(json, site);
  for (const Json& frame : json["frames"]) site.frames.push_back(frame_of(frame));
  if (!json.contains("logged")) site.logged = site.patterns;
  if (!json["bytes"].is_null()) kBytesKeys.read(json["bytes"], site);
  site.elapsed = histogram_of(json["elapsed_ns"]);
  site.first_to_last = histogram_of(json["imbalance_ns"]);
  site.after_last_histogram = histogram_of(json["after_last_ns"]);
  for (const auto& [name, d] : json["dispatch"].items()) {
    site.dispatch.push_back({.algorithm = name});
    kDispatchKeys.read(d, site.dispatch.back());
  }
  if (const auto decisions = json.find("decisions"); decisions != json.end())
    for (const Json& decision : *decisions) site.decisions.push_back(decision_of(decision));
  if (const auto sources = json.find("pattern_sources"); sources != json.end())
    for (const auto& [name, source] : sources->items()) {
      site.sources.push_back({.name = name, .error = {}});
      kSourceKeys.read(source, site.sources.back());
    }
  if (const auto callers = json.find("callers"); callers != json.end())
    for (const Json& caller : *callers) site.callers.push_back(caller_of(caller));
  site.imbalance = site.first_to_last.mean;
  site.after_last = site.after_last_histogram.mean;
  // Profiles of the first versions hold the time from first to last arrival only.
  if (!json.contains("waited_ns")) site.waited = site.imbalance * site.unrested();
  if (const auto before = json.find("before"); before != json.end()) site.before = intervals_of(*before);
  for (const analysis::Dispatch& d : site.dispatch) site.after_last_sum += d.calls * d.after_last;
  return site;
}

}  // namespace

Profile read_profile(WholeProfile& whole, const Wanted& wanted) {
  Json& json = whole.profile;
  if (wanted.names) resolve_names(json, wanted.patience);
  if (wanted.redacted) redact(json);
  Profile out;
  out.job = job_of(json);
  out.network = network_of(json);
  out.processes = processes_of(json);
  out.loads = loads_of(json);
  for (const Json& one : json.value("not_counted", Json::array()))
    out.not_counted.push_back(kUncountedKeys.as<analysis::UncountedFigures>(one));
  const bool whole_runs =
      std::ssize(out.processes) == out.job.ranks &&
      std::ranges::all_of(out.processes, [](const auto& p) { return p.times.init > 0 && p.wall > p.times.init; });
  for (const analysis::ProcessFigures& p : out.processes) out.job.run_time += whole_runs ? p.wall : 0;
  const Json& sites = json["sites"];
  std::vector<double> waits;
  for (const Json& site : sites) waits.push_back(number_in(site, "waited_ns"));
  std::ranges::sort(waits, std::greater());
  const double least = waits.size() > analysis::kWorstSites ? waits[analysis::kWorstSites - 1] : -1;
  Progress progress("reading " + whole.name + " (" + std::to_string(whole.bytes() / 1'000'000) + " MB), sites", 0,
                    wanted.patience);
  for (std::size_t i = 0; i < sites.size(); ++i) {
    Site& site = out.sites.emplace_back(site_of(sites[i]));
    site.index = i;
    const bool left_out = wanted.worst_only && number_in(sites[i], "waited_ns") < least;
    take_rows(site, left_out ? std::vector<RankRow>() : rows_of(whole, i), wanted, out.analysis);
    progress.done();
  }
  for (const Json& site : json.value("timed_sites", Json::array())) out.timed_sites.push_back(timed_site_of(site));
  for (const Json& site : json.value("thread_sites", Json::array())) out.thread_sites.push_back(timed_site_of(site));
  if (const auto code = json.find("code"); code != json.end()) out.code = code_of(*code);
  if (const auto pairs = json.find("pairs"); pairs != json.end()) out.pairs = pairs_of(*pairs);
  if (const auto all = json.find("communicators"); all != json.end())
    for (const Json& one : *all) {
      auto& its = out.communicators.emplace_back(kCommunicatorKeys.as<analysis::Communicator>(one));
      its.share = Share::of(its.waited, out.job.rank_time());
    }
  out.warnings = json["warnings"].get<std::vector<std::string>>();
  out.hosts = hosts_of_ranks(json);
  if (const auto arrivals = json.find("arrivals");
      arrivals != json.end() && (wanted.record || (wanted.sample && arrivals->contains("sample"))))
    out.record = recorded_arrivals(json, whole.name);
  out.last_state = last_state_of(json);
  out.analysis.finish(out.processes, out.job.ranks, sums_of(json));
  return out;
}

Profile load_profile(const std::string& path, const Wanted& wanted) {
  WholeProfile whole(path, wanted.patience);
  return read_profile(whole, wanted);
}

const RecordedArrivals& record_of(const Profile& profile, const std::string& file) {
  if (!profile.record)
    throw BadUsage("'" + file +
                   "' holds no record of arrivals: run the job with latecomer run --record, or with \"record\": "
                   "\"arrivals\" in its policy (by default, a record holds calls on MPI_COMM_WORLD in mode observe)");
  return *profile.record;
}

}  // namespace latecomer::profiles

// SPDX-License-Identifier: BSD-3-Clause
// Writes one sample per line: name, labels, value. Sums up the book of a leader.
#include "profiles/format/prometheus.hpp"

#include <map>

#include "core/base/text.hpp"

namespace latecomer::profiles {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : core::utf8(text))
    if (c == '\n') out += "\\n";
    else (out += c == '"' || c == '\\' ? "\\" : "") += c;
  return out + '"';
}

std::string text_of(const Labels& labels) {
  std::string out;
  for (const auto& [name, value] : labels) out += (out.empty() ? "" : ",") + name + "=" + quoted(value);
  return out;
}

class MetricText {
 public:
  explicit MetricText(const Labels& job) : job_(text_of(job)) {}
  void metric(const char* name, const char* type, const char* help) {
    name_ = name;
    out_.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ").append(name).append(" ");
    out_.append(type).append("\n");
  }
  void sample(const Labels& labels, double value) {
    out_.append(name_).append("{").append(job_);
    if (!labels.empty()) out_.append(",").append(text_of(labels));
    out_.append("} ").append(core::significant(value, 9)).append("\n");
  }
  std::string take() { return std::move(out_); }

 private:
  std::string job_, name_, out_;
};

/// "function (file:line)" if the process knows it, else module and offset.
std::string place_of(const Frame& frame) {
  return frame.function.empty()
             ? core::base_name(frame.module) + "+" + core::hexadecimal(frame.offset)
             : frame.function + " (" + core::base_name(frame.file) + ":" + std::to_string(frame.line) + ")";
}

}  // namespace

std::string prometheus_text(const Metrics& metrics) {
  constexpr double kSecond = 1e-9;
  MetricText text(metrics.job);
  if (metrics.wait_share >= 0) {
    text.metric("latecomer_wait_share", "gauge", "Share of the ranks' time that they waited in collectives.");
    text.sample({}, metrics.wait_share);
  }
  const auto of_rank = [](const RankMetrics& row) {
    Labels out = {{"rank", row.rank}};
    if (!row.host.empty()) out.emplace_back("host", row.host);
    return out;
  };
  text.metric("latecomer_rank_waited_seconds_total", "counter", "Time that the rank waited for others.");
  for (const auto& row : metrics.ranks) text.sample(of_rank(row), kSecond * row.waited_ns);
  text.metric("latecomer_rank_awaited_seconds_total", "counter", "Time that others waited for the rank.");
  for (const auto& row : metrics.ranks) text.sample(of_rank(row), kSecond * row.awaited_ns);
  text.metric("latecomer_rank_last_total", "counter", "Calls in which the rank came last.");
  for (const auto& row : metrics.ranks) text.sample(of_rank(row), row.times_last);
  text.metric("latecomer_rank_lateness_seconds", "gauge", "Mean lateness after the mean arrival of the others.");
  for (const auto& row : metrics.ranks) text.sample(of_rank(row), kSecond * row.lateness_ns);

  text.metric("latecomer_site_calls_total", "counter", "Collective operations from the call site.");
  for (const auto& site : metrics.sites) text.sample(site.labels, site.calls);
  text.metric("latecomer_site_waited_seconds_total", "counter", "Time that ranks waited at the call site.");
  for (const auto& site : metrics.sites) text.sample(site.labels, kSecond * site.waited_ns);
  const auto of_both = [](const SiteMetrics& site, const RankMetrics& row) {
    Labels out = site.labels;
    out.emplace_back("rank", row.rank);
    return out;
  };
  text.metric("latecomer_site_last_total", "counter", "Calls from the site in which the rank came last.");
  for (const auto& site : metrics.sites)
    for (const auto& row : site.ranks) text.sample(of_both(site, row), row.times_last);
  text.metric("latecomer_site_lateness_seconds", "gauge", "Mean time from the first arrival to that of the rank.");
  for (const auto& site : metrics.sites)
    for (const auto& row : site.ranks) text.sample(of_both(site, row), kSecond * row.lateness_ns);
  if (!metrics.findings.empty()) {
    text.metric("latecomer_finding_gain", "gauge", "Share of the run that the finding could save at most.");
    for (const auto& [labels, gain] : metrics.findings) text.sample(labels, gain);
  }
  return text.take();
}

Metrics metrics_of(const Contribution& leader, std::size_t sites, std::size_t ranks) {
  const int per_row = ranks_per_row(leader.job.ranks);
  const auto name = [&](std::int32_t row) {
    const int first = row * per_row, last = std::min(first + per_row, leader.job.ranks) - 1;
    return last > first ? std::to_string(first) + "-" + std::to_string(last) : std::to_string(first);
  };
  Metrics out;
  out.job = {{"program", core::base_name(leader.job.program)}};
  leader.patterns.sums.each([&](Rank rank, const RankSums& sum) {
    out.ranks.push_back({std::to_string(rank), "", sum.waited_ns, sum.awaited_ns, static_cast<double>(sum.last_count),
                         sum.calls > 0 ? sum.late_ns / static_cast<double>(sum.calls) : 0});
  });
  keep_largest(out.ranks, ranks, [](const RankMetrics& row) { return row.awaited_ns; });
  // A site has an entry for each of its callers.
  struct Site {
    SiteKey key;
    std::vector<const PatternSite*> of;
    double calls = 0, waited = 0;
  };
  std::map<SiteKey, Site> all;
  for (const auto& [key, of] : leader.patterns.sites()) {
    Site& site = all[key.site_only()];
    site.key = key.site_only();
    site.of.push_back(&of);
    site.calls += static_cast<double>(of.calls);
    for (const auto& [number, r] : of.ranks.rows()) site.waited += r.waited_ns;
  }
  std::vector<Site> kept;
  kept.reserve(all.size());
  for (auto& [key, site] : all) kept.push_back(std::move(site));
  keep_largest(kept, sites, [](const Site& site) { return site.waited; });
  for (const Site& row : kept) {
    SiteMetrics& site = out.sites.emplace_back();
    site.calls = row.calls;
    site.waited_ns = row.waited;
    const auto frame =
        std::ranges::find_if(leader.frames, [&](const Frame& f) { return f.site == row.key.site && f.callers == 0; });
    site.labels = {{"op", std::string(core::name_of(row.key.op))},
                   {"ranks", std::to_string(row.key.comm_size)},
                   {"site", row.key.id()},
                   {"place", frame == leader.frames.end() ? "" : place_of(*frame)}};
    struct Offsets {
      RankMetrics row;
      double sum = 0, calls = 0;
    };
    std::map<std::int32_t, Offsets> rows;
    for (const PatternSite* of : row.of)
      for (const auto& [number, r] : of->ranks.rows()) {
        Offsets& o = rows[number];
        o.row.waited_ns += r.waited_ns;
        o.row.awaited_ns += r.awaited_ns;
        o.row.times_last += static_cast<double>(r.last_count);
        const auto calls = static_cast<double>(r.offset.count());
        o.sum += r.offset.mean() * calls;
        o.calls += calls;
      }
    for (auto& [number, o] : rows) {
      o.row.rank = name(number);
      o.row.lateness_ns = o.sum / std::max(1.0, o.calls);
      site.ranks.push_back(std::move(o.row));
    }
    keep_largest(site.ranks, ranks, [](const RankMetrics& r) { return r.times_last; });
  }
  return out;
}

}  // namespace latecomer::profiles

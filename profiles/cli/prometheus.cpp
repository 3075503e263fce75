// SPDX-License-Identifier: BSD-3-Clause
// Writes one sample per line: name, labels, value.
#include "profiles/cli/prometheus.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "profiles/cli/profile_file.hpp"
#include "profiles/cli/verdict.hpp"

namespace latecomer::cli {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text)
    if (c == '\n') out += "\\n";
    else (out += c == '"' || c == '\\' ? "\\" : "") += c;
  return out + '"';
}

class Text {
 public:
  void metric(const char* name, const char* type, const char* help) {
    name_ = name;
    out_.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ").append(name).append(" ");
    out_.append(type).append("\n");
  }
  void sample(const std::string& labels, double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", value);
    out_.append(name_).append("{").append(labels).append("} ").append(text).append("\n");
  }
  std::string take() { return std::move(out_); }

 private:
  std::string name_, out_;
};

/// The first `most` objects by one of their keys, the largest first.
std::vector<const Json*> largest(const Json& rows, const char* key, int most) {
  std::vector<const Json*> out;
  out.reserve(rows.size());
  for (const Json& row : rows) out.push_back(&row);
  std::stable_sort(out.begin(), out.end(),
                   [&](const Json* a, const Json* b) { return a->value(key, 0.0) > b->value(key, 0.0); });
  out.resize(std::min(out.size(), static_cast<std::size_t>(std::max(most, 0))));
  return out;
}

}  // namespace

std::string prometheus_text(const Json& profile, int sites, int ranks) {
  constexpr double kSecond = 1e-9;
  Text text;
  const std::string job = "program=" + quoted(profile["job"]["program"].get<std::string>());
  const Json all = ranks_json(profile);
  const auto rows = largest(all, "awaited_ns", ranks);
  const auto of_rank = [&](const Json& row) {
    return job + ",rank=\"" + row["rank"].dump() + "\",host=" + quoted(row["host"].get<std::string>());
  };
  text.metric("latecomer_wait_share", "gauge", "Share of the ranks' time that they waited in collectives.");
  text.sample(job, wait_share(profile));
  text.metric("latecomer_rank_waited_seconds_total", "counter", "Time that the rank waited for others.");
  for (const Json* row : rows) text.sample(of_rank(*row), kSecond * row->value("waited_ns", 0.0));
  text.metric("latecomer_rank_awaited_seconds_total", "counter", "Time that others waited for the rank.");
  for (const Json* row : rows) text.sample(of_rank(*row), kSecond * row->value("awaited_ns", 0.0));
  text.metric("latecomer_rank_last_total", "counter", "Calls in which the rank came last.");
  for (const Json* row : rows) text.sample(of_rank(*row), row->value("times_last", 0.0));
  text.metric("latecomer_rank_lateness_seconds", "gauge", "Mean lateness after the mean arrival of the others.");
  for (const Json* row : rows) text.sample(of_rank(*row), kSecond * row->value("mean_lateness_ns", 0.0));

  const auto of_site = [&](const Json& site) {
    return job + ",op=" + quoted(site["op"].get<std::string>()) + ",ranks=\"" + site["comm_size"].dump() +
           "\",site=\"" + site["id"].get<std::string>() + "\",place=" + quoted(place(site["frames"][0]));
  };
  const auto chosen = largest(profile["sites"], "waited_ns", sites);
  text.metric("latecomer_site_calls_total", "counter", "Collective operations from the call site.");
  for (const Json* site : chosen) text.sample(of_site(*site), (*site)["calls"].get<double>());
  text.metric("latecomer_site_waited_seconds_total", "counter", "Time that ranks waited at the call site.");
  for (const Json* site : chosen) text.sample(of_site(*site), kSecond * site->value("waited_ns", 0.0));
  text.metric("latecomer_site_last_total", "counter", "Calls from the site in which the rank came last.");
  for (const Json* site : chosen)
    for (const Json* row : largest((*site)["ranks"], "last_count", ranks))
      text.sample(of_site(*site) + ",rank=\"" + row_name(*row) + '"', (*row)["last_count"].get<double>());
  text.metric("latecomer_site_lateness_seconds", "gauge", "Mean time from the first arrival to that of the rank.");
  for (const Json* site : chosen)
    for (const Json* row : largest((*site)["ranks"], "last_count", ranks))
      text.sample(of_site(*site) + ",rank=\"" + row_name(*row) + '"', kSecond * (*row)["mean_offset_ns"].get<double>());
  return text.take();
}

}  // namespace latecomer::cli

// SPDX-License-Identifier: BSD-3-Clause
// Takes the figures for Prometheus from a profile.
#include "profiles/cli/prometheus.hpp"

#include "core/base/text.hpp"
#include "profiles/cli/profile_file.hpp"
#include "profiles/cli/verdict.hpp"
#include "profiles/json.hpp"

namespace latecomer::cli {

profiles::Metrics metrics_of(const Json& profile, int sites, int ranks) {
  using profiles::RankMetrics;
  const auto most = static_cast<std::size_t>(std::max(ranks, 0));
  const std::string program = profile["job"]["program"].get<std::string>();
  profiles::Metrics out;
  out.job = {{"program", core::base_name(program)}};
  out.wait_share = wait_share(profile);
  for (const Json& row : ranks_json(profile))
    out.ranks.push_back({profiles::json_text(row["rank"]), row["host"].get<std::string>(),
                         row["waited_ns"].get<double>(), row["awaited_ns"].get<double>(),
                         row["times_last"].get<double>(), row["mean_lateness_ns"].get<double>()});
  profiles::keep_largest(out.ranks, most, [](const RankMetrics& row) { return row.awaited_ns; });
  for (const Json& site : profile["sites"]) {
    auto& one = out.sites.emplace_back();
    one.labels = {{"op", site["op"].get<std::string>()},
                  {"ranks", profiles::json_text(site["comm_size"])},
                  {"site", site["id"].get<std::string>()},
                  {"place", place(site["frames"][0])}};
    one.calls = site["calls"].get<double>(), one.waited_ns = site.value("waited_ns", 0.0);
    for (const Json& row : site["ranks"])
      one.ranks.push_back({row_name(row), "", row.value("waited_ns", 0.0), row.value("awaited_ns", 0.0),
                           row["last_count"].get<double>(), row["mean_offset_ns"].get<double>()});
    profiles::keep_largest(one.ranks, most, [](const RankMetrics& row) { return row.times_last; });
  }
  profiles::keep_largest(out.sites, static_cast<std::size_t>(std::max(sites, 0)),
                         [](const profiles::SiteMetrics& site) { return site.waited_ns; });
  return out;
}

}  // namespace latecomer::cli

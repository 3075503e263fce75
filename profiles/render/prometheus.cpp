// SPDX-License-Identifier: BSD-3-Clause
// Takes the figures for Prometheus from a profile.
#include "profiles/render/prometheus.hpp"

#include "core/base/text.hpp"
#include "profiles/analysis/findings.hpp"

namespace latecomer::profiles {

Metrics metrics_of(const Profile& profile, int sites, int ranks) {
  const auto most = static_cast<std::size_t>(std::max(ranks, 0));
  Metrics out;
  out.job = {{"program", core::base_name(profile.job.program)}};
  if (const auto waits = analysis::wait_share(profile); waits.known()) out.wait_share = waits.value();
  for (const analysis::RankFigures& r : profile.analysis.ranks())
    out.ranks.push_back({r.name(), r.host, r.waited, r.awaited, r.last, r.late.value_or(0)});
  keep_largest(out.ranks, most, [](const RankMetrics& row) { return row.awaited_ns; });
  for (const Site& site : profile.sites) {
    auto& one = out.sites.emplace_back();
    one.labels = {{"op", site.op},
                  {"ranks", std::to_string(static_cast<long>(site.comm_size))},
                  {"site", site.id},
                  {"place", site.place()}};
    one.calls = site.calls;
    one.waited_ns = site.waited;
    for (const analysis::RankRow& row : site.ranks)
      one.ranks.push_back({row.name(), "", row.waited, row.awaited, row.last, row.offset});
    keep_largest(one.ranks, most, [](const RankMetrics& row) { return row.times_last; });
  }
  for (const analysis::Finding& one : analysis::findings(profile))
    if (one.gain)
      out.findings.push_back({{{"finding", std::string(one.id())},
                               {"site", one.site ? one.site->id : ""},
                               {"rank", one.ranks > 0 ? analysis::RankRow::ranks_name(one.rank, one.ranks) : ""}},
                              one.gain->high});
  keep_largest(out.sites, static_cast<std::size_t>(std::max(sites, 0)),
               [](const SiteMetrics& site) { return site.waited_ns; });
  return out;
}

}  // namespace latecomer::profiles

// SPDX-License-Identifier: BSD-3-Clause
// Writes a text file for Prometheus while the job runs (policy key `prometheus`).
#include "shim/job/prometheus.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "profiles/format/prometheus.hpp"
#include "profiles/record/files.hpp"
#include "shim/job/output.hpp"
#include "shim/log.hpp"

namespace latecomer::shim {

void begin_prometheus(Job& j) {
  if (j.policy.prometheus.empty()) return;
  std::string name = "latecomer-" + job_id() + "-" + std::to_string(j.rank) + ".prom";
  std::replace(name.begin(), name.end(), '/', '_');
  // Programs change their directory.
  j.prometheus = std::filesystem::absolute(j.policy.prometheus) / name;
}

void write_prometheus(Job& j) {
  if (j.prometheus.empty() || j.prometheus_failed || j.mine.patterns.sites().empty()) return;
  // Bounds the number of time series: (6 + 2 * 10) * 10 per leader. More take more of the server's memory.
  constexpr std::size_t kMost = 10;
  profiles::Metrics metrics = profiles::metrics_of(j.mine, kMost, kMost);
  // Two leaders, and two jobs, may know the same rank or site: without these labels, their samples would clash.
  metrics.job.insert(metrics.job.end(), {{"jobid", job_id()}, {"leader", std::to_string(j.rank)}});
  const auto written = profiles::write_file(j.prometheus, profiles::prometheus_text(metrics));
  j.prometheus_failed = !written;
  j.prometheus_written = j.prometheus_written || written;
  // One line per host: its ranks write into the same folder.
  const auto same_host = [&](int host) { return host == j.hosts[static_cast<std::size_t>(j.rank)]; };
  const bool first = j.hosts.empty() || std::ranges::find_if(j.hosts, same_host) - j.hosts.begin() == j.rank;
  if (!written && first) warn("%s; no figures for Prometheus are written", written.error().c_str());
}

void remove_prometheus(Job& j) {
  if (j.prometheus_written) unlink(j.prometheus.c_str());
}

}  // namespace latecomer::shim

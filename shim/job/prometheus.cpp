// SPDX-License-Identifier: BSD-3-Clause
// Writes a text file for Prometheus while the job runs (policy key `prometheus`).
#include "shim/job/prometheus.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "profiles/files/shared_folder.hpp"
#include "profiles/format/prometheus.hpp"
#include "shim/job/output.hpp"
#include "shim/log.hpp"
#include "shim/state/output.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/shared.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {

void begin_prometheus() {
  if (job_rules().policy.prometheus.empty()) return;
  std::string name = "latecomer-" + job_id() + "-" + std::to_string(job_world().rank) + ".prom";
  std::replace(name.begin(), name.end(), '/', '_');
  // Programs change their directory.
  job_output().prometheus = std::filesystem::absolute(job_rules().policy.prometheus) / name;
}

void write_prometheus(const JobLock& lock) {
  if (job_output().prometheus.empty() || job_output().prometheus_failed || lock->mine.patterns.sites().empty()) return;
  // Bounds the number of time series: (6 + 2 * 10) * 10 per leader. More take more of the server's memory.
  constexpr std::size_t kMost = 10;
  profiles::Metrics metrics = profiles::metrics_of(lock->mine, kMost, kMost);
  // Two leaders, and two jobs, may know the same rank or site: without these labels, their samples would clash.
  metrics.job.insert(metrics.job.end(), {{"jobid", job_id()}, {"leader", std::to_string(job_world().rank)}});
  const auto written = profiles::write_file(job_output().prometheus, profiles::prometheus_text(metrics));
  job_output().prometheus_failed = !written;
  job_output().prometheus_written = job_output().prometheus_written || written;
  // One line per host: its ranks write into the same folder.
  const auto same_host = [&](int host) {
    return host == job_world().hosts[static_cast<std::size_t>(job_world().rank)];
  };
  const bool first = job_world().hosts.empty() ||
                     std::ranges::find_if(job_world().hosts, same_host) - job_world().hosts.begin() == job_world().rank;
  if (!written && first) warn("%s; no figures for Prometheus are written", written.error().c_str());
}

void remove_prometheus() {
  if (job_output().prometheus_written) unlink(job_output().prometheus.c_str());
}

}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// Keeps this process's contribution to the profile (Job::mine) up to date.
#include "shim/job/contribution.hpp"

#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "core/base/file.hpp"
#include "core/base/text.hpp"
#include "shim/call/idle.hpp"
#include "shim/causes/usage.hpp"
#include "shim/exchange/exchange.hpp"
#include "shim/job/hosts.hpp"
#include "shim/log.hpp"
#include "shim/sites/sites.hpp"
#include "shim/waiting/courteous.hpp"

namespace latecomer::shim {
namespace {

std::string command_line() {
  const auto read = core::read_file("/proc/self/cmdline");
  std::string text = read ? *read : "";
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

}  // namespace

void describe_job(Job& j) {
  profiles::JobInfo& info = j.mine.job;
  info.command_line = command_line();
  info.program = info.command_line.substr(0, info.command_line.find(' '));
  const std::time_t wall = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&wall));
  info.start = text;
  info.ranks = j.size;
  static char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  PMPI_Get_library_version(version, &length);
  info.mpi_library = std::string(version).substr(0, std::string(version).find('\n'));
  std::replace(info.mpi_library.begin(), info.mpi_library.end(), '\t', ' ');
  j.mine.rank = j.rank;
  const cpu_set_t cores = own_cores();
  j.mine.process.cores = CPU_COUNT(&cores);
  j.mine.process.core_list = core_list(cores);
  j.mine.process.host_cores = static_cast<std::int32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  sampler.start();
  j.mine.clock_domain = core::hex16(clock_domain());
  // Until the clocks are compared, the offsets of other domains are unknown.
  j.mine.clock_uncertainty = -1;
}

void take_frames(Job& j) {
  if (site_count() != j.mine.frames.size()) j.mine.frames = site_frames();
}

void refresh(Job& j, bool finished) {
  profiles::Contribution& c = j.mine;
  idle_drain();
  j.queue.drain();
  c.job.wall_time_s = static_cast<double>(now() - j.started) * 1e-9;
  c.job.mode = j.policy.mode == core::Mode::apply ? "apply" : "observe";
  using From = profiles::NetworkFrom;
  c.job.network_from = !j.policy.network_given ? From::none : j.policy.network_measure ? From::start : From::policy;
  c.job.network = j.policy.network;
  c.job.promised = j.policy.promised;
  c.job.history.calls = j.remembered;
  c.finished = finished;
  // Another thread cannot read the counters of the one that started MPI.
  if (const profiles::Usage usage = sampler.total(); usage.wall > 0) c.process.usage = usage;
  if (mpi_time.watched) c.process.peers = sampler.peers();  // only this thread writes them
  c.process.courteous = j.courteous || yields_by_itself();
  if (j.together) {
    c.clock_offset = j.clocks.offset;
    c.clock_uncertainty = j.clocks.uncertainty_now();
    c.clock_looks = j.clocks.looks;
  }
  c.decisions = j.past_decisions;
  for (const CommState* s = j.states; s; s = s->next)
    if (s->leadership)
      c.decisions.insert(c.decisions.end(), s->leadership->decisions.begin(), s->leadership->decisions.end());
  if (j.world_state && j.mine.sample.begun()) c.sample.counted = j.world_state->member.sequence().next_number();
  take_frames(j);
  take_warnings(j);
}

void take_warnings(Job& j) {
  auto& kept = j.mine.warnings;
  while (static_cast<int>(kept.size()) < warning_count())
    kept.emplace_back(warning_text(static_cast<int>(kept.size())));
}

}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// Keeps this process's contribution to the profile (Shared::mine) up to date.
#include "shim/job/contribution.hpp"

#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "core/base/file.hpp"
#include "core/base/text.hpp"
#include "shim/call/idle.hpp"
#include "shim/causes/message_ends.hpp"
#include "shim/causes/usage.hpp"
#include "shim/causes/waits_for.hpp"
#include "shim/exchange/exchange.hpp"
#include "shim/job/host_load.hpp"
#include "shim/job/hosts.hpp"
#include "shim/log.hpp"
#include "shim/sites/sites.hpp"
#include "shim/state/clocks.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/cost.hpp"
#include "shim/state/earlier_run.hpp"
#include "shim/state/not_counted.hpp"
#include "shim/state/process.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/shared.hpp"
#include "shim/state/world.hpp"
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

void describe_job() {
  const std::string domain = core::hex16(clock_domain());
  const JobLock lock;
  profiles::JobInfo& info = lock->mine.job;
  info.command_line = command_line();
  info.program = info.command_line.substr(0, info.command_line.find(' '));
  const std::time_t wall = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&wall));
  info.start = text;
  info.ranks = job_world().size;
  static char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  PMPI_Get_library_version(version, &length);
  info.mpi_library = std::string(version).substr(0, std::string(version).find('\n'));
  std::replace(info.mpi_library.begin(), info.mpi_library.end(), '\t', ' ');
  lock->mine.rank = job_world().rank;
  const cpu_set_t cores = own_cores();
  lock->mine.process.cores = CPU_COUNT(&cores);
  lock->mine.process.core_list = core_list(cores);
  lock->mine.process.host_cores = static_cast<std::int32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  sampler.start_sampling();
  peer_table.begin(info.ranks);
  lock->mine.peers.reserve(
      2 * static_cast<std::size_t>(std::min(info.ranks, profiles::PeerTable::kRows)));  // for snapshots
  lock->mine.clock_domain = domain;
  // Until the clocks are compared, the offsets of other domains are unknown.
  lock->mine.clock_uncertainty = -1;
}

void take_frames(const JobLock& lock) {
  if (site_count() != lock->mine.frames.size()) lock->mine.frames = site_frames();
}

void refresh_contribution(const JobLock& lock, bool finished) {
  profiles::Contribution& c = lock->mine;
  for (CommState* s = lock->states; s; s = s->next) idle_pass(*s);
  idle_drain();
  lock->queue.drain();
  c.job.wall_time_s = static_cast<double>(now() - job_process().started) * 1e-9;
  c.job.mode = job_rules().policy.mode == core::Mode::apply ? "apply" : "observe";
  using From = profiles::NetworkFrom;
  c.job.network_from = !job_rules().policy.network_given    ? From::none
                       : job_rules().policy.network_measure ? From::start
                                                            : From::policy;
  c.job.network = job_rules().policy.network;
  c.job.promised = job_rules().policy.promised;
  c.job.history.calls = earlier_run().calls;
  c.finished = finished;
  // Another thread cannot read the counters of the one that started MPI.
  if (const profiles::Usage usage = sampler.total_usage(); usage.wall > 0) c.process.usage = usage;
  if (mpi_time.watched) {  // only this thread writes them
    const profiles::CallDraw& calls = mpi_time.messages;
    c.process.peers = sampler.peers();
    c.timed_sites.clear();
    profiles::TimedSite others;
    timed_sites.add_to(c.timed_sites, 0, others);
    fold_shortest(c.timed_sites, 0, others);
    c.peers.clear();
    peer_table.for_each([&](const profiles::PeerSums& one) { c.peers.push_back(one); });
    if (finished) message_ends.list_ends(c.message_ends);
    code_sampler.list(c, finished);
    c.process.message_calls = calls.timed() + calls.resting();
    c.process.message_calls_timed = calls.timed();
    c.process.messages_error = static_cast<Nanoseconds>(calls.error());
  }
  std::erase_if(c.timed_sites, [](const profiles::TimedSite& site) { return site.key.other_threads; });
  thread_rows.list(c.process.threads, c.timed_sites);
  c.process.all_inside = thread_rows.all_inside();
  for (std::size_t i = 0; i < profiles::kCosts; ++i) c.process.cost.of[i] = spent.of(static_cast<profiles::CostOf>(i));
  refresh_host_load(c);
  c.not_counted = {};
  for (std::size_t i = 0; i < std::size(profiles::kUncounted); ++i) {
    const auto kind = static_cast<profiles::Uncounted>(i);
    // Without the counters of the kernel, no thread's time is known.
    if (kind != profiles::Uncounted::other_threads || c.process.usage.wall > 0)
      c.not_counted.add_rank(kind, declined.of(kind));
  }
  c.process.courteous = job_rules().courteous || yields_by_itself();
  if (job_world().together) {
    c.clock_offset = job_clocks().offset;
    c.clock_uncertainty = job_clocks().uncertainty_now();
    c.clock_looks = job_clocks().looks;
  }
  c.decisions = lock->past_decisions;
  for (const CommState* s = lock->states; s; s = s->next)
    if (s->tree.leadership)
      c.decisions.insert(c.decisions.end(), s->tree.leadership->decisions.begin(), s->tree.leadership->decisions.end());
  if (job_world().state && lock->mine.sample.begun())
    c.sample.counted = job_world().state->member.sequence().next_number();
  take_frames(lock);
  take_warnings(lock);
}

void take_warnings(const JobLock& lock) {
  auto& kept = lock->mine.warnings;
  while (static_cast<int>(kept.size()) < warning_count())
    kept.emplace_back(warning_text(static_cast<int>(kept.size())));
}

}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// Reads the processor clocks of the ranks of this host beside the counters of the host.
#include "shim/job/host_load.hpp"

#include <time.h>
#include <unistd.h>

#include <memory>
#include <optional>

#include "profiles/base/host_counters.hpp"
#include "shim/clock.hpp"

namespace latecomer::shim {
namespace {

struct Meter {
  profiles::HostLoad load;
  std::vector<clockid_t> clocks;  ///< of the ranks; empty: not all of them have clocks that this rank can read
  std::optional<profiles::HostCounters> counters;
  std::optional<Nanoseconds> job_at_start;
  Nanoseconds begin = 0;

  std::optional<Nanoseconds> job_time() const {
    Nanoseconds sum = 0;
    for (const clockid_t clock : clocks) {
      timespec cpu{};
      if (clock_gettime(clock, &cpu) != 0) return {};
      sum += static_cast<Nanoseconds>(cpu.tv_sec) * 1'000'000'000 + cpu.tv_nsec;
    }
    return clocks.empty() ? std::nullopt : std::optional(sum);
  }
};

/// Made once at the start, and never freed: the last snapshot may be written while the process ends.
constinit Meter* meter = nullptr;

}  // namespace

void watch_host(const std::vector<profiles::ProcessId>& ranks, int usable) {
  auto made = std::make_unique<Meter>();
  made->load.ranks = static_cast<std::int32_t>(ranks.size());
  made->load.cores = static_cast<std::int32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  made->load.usable = usable;
  const profiles::ProcessId mine = profiles::this_process();
  for (const profiles::ProcessId& rank : ranks) {
    clockid_t clock{};
    if (rank.pid_namespace == 0 || rank.pid_namespace != mine.pid_namespace ||
        clock_getcpuclockid(rank.pid, &clock) != 0) {
      made->clocks.clear();
      break;
    }
    made->clocks.push_back(clock);
  }
  meter = made.release();
}

void begin_host_load() {
  if (!meter) return;
  meter->counters.emplace();
  meter->job_at_start = meter->job_time();
  meter->begin = now();
}

void refresh_host_load(profiles::Contribution& mine) {
  if (!meter || !meter->counters) return;
  const profiles::HostTimes times = meter->counters->since_start();
  const std::optional<Nanoseconds> job = meter->job_time();
  profiles::HostLoad& load = meter->load;
  load.host = mine.host;
  load.span = now() - meter->begin;
  load.busy = times.busy;
  load.steal = times.steal;
  load.pressure = times.pressure;
  load.throttled = times.throttled;
  load.job = job && meter->job_at_start ? std::optional(*job - *meter->job_at_start) : std::nullopt;
  mine.loads.assign(1, load);
}

}  // namespace latecomer::shim

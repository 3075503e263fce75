// SPDX-License-Identifier: BSD-3-Clause
// The one writer of snapshots: to disk, in case the process is killed. Every MPI call that latecomer handles compares a
// time that it has read with snapshot_due, so a rank writes as long as it calls MPI, whatever it calls.
#include "shim/job/snapshots.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "shim/exchange/branch.hpp"
#include "shim/guard.hpp"
#include "shim/job/contribution.hpp"
#include "shim/job/prometheus.hpp"
#include "shim/log.hpp"
#include "shim/mpi/entry.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/cost.hpp"
#include "shim/state/output.hpp"
#include "shim/state/process.hpp"
#include "shim/state/shared.hpp"
#include "shim/state/snapshot.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {

LATECOMER_TOGETHER constinit std::atomic<Nanoseconds> snapshot_due{INT64_MAX};

bool write_snapshot(const JobLock& lock, bool finished) {
  std::vector<profiles::LiveLog>& live = lock->live;
  const Nanoseconds begin = now();
  refresh_contribution(lock, finished);
  live.clear();
  // Room at once, since a steady program must not allocate at a later snapshot. Derived: the log at hand, two epochs
  // that are over, and rarely more than three under way.
  constexpr std::size_t kLogsOfOne = 6;
  std::size_t communicators = 0;
  for (const CommState* s = lock->states; s; s = s->next) ++communicators;
  live.reserve(kLogsOfOne * communicators);
  for (const CommState* s = lock->states; s; s = s->next)
    if (const CallLog& log = s->log(lock); !log.records.empty() && !s->foreign && s->size > 1 && !s->world.empty())
      live.push_back(
          {s->identity, s->size, s->rank, s->world[static_cast<std::size_t>(s->rank)], log.first, log.records});
  const auto held = add_open_logs(live, false);
  const auto result = job_output().spool.write(lock->mine, live);
  if (!finished) write_prometheus(lock);
  // While one rank writes, the other ranks wait for it sooner or later, so the shares of all ranks add up. The first
  // write also creates the files, so its time does not count.
  const Nanoseconds end = now();
  if (active.load(std::memory_order_relaxed))
    snapshot_due = end + profiles::pause_after_snapshot(job_output().spool.made() ? end - begin : 0);
  if (!result && (job_world().rank == 0 || !job_world().together)) warn("%s", result.error().c_str());
  return static_cast<bool>(result);
}

void begin_snapshots() {
  if (!job_output().spool.begun() && job_output().prometheus.empty()) return;
  attempt([&] {
    const JobLock lock;
    refresh_contribution(lock, false);
    job_output().spool.prepare(lock->mine);
  });
  snapshot_due = now() + profiles::pause_after_snapshot(0);
}

void write_due_snapshot() noexcept {
  const KeepErrno keep;
  const Spending work(profiles::CostOf::files);
  if (!active.load() || job_process().pid != getpid()) return;  // a forked child
  const Outcome done = attempt([&] {
    const JobLock lock;
    if (now() >= snapshot_due) write_snapshot(lock, false);
  });
  if (done) return;
  warn("a snapshot is missing: %s", done.why);
  snapshot_due = now() + profiles::pause_after_snapshot(0);
}

void prepare_snapshot() {
  {
    const JobLock lock;
    take_frames(lock);
  }
  static std::atomic<bool> begun{false};
  if (snapshot_due == INT64_MAX || begun.exchange(true) || job_output().spool.written()) return;
  snapshot_due = 0;
  write_due_snapshot();
}

void before_abort() noexcept {
  if (job_process().pid != getpid() || !active.exchange(false)) return;
  snapshot_due = INT64_MAX;
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);  // now() may be what the signal interrupted
  const auto at = static_cast<Nanoseconds>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
  job_output().spool.note_abort(std::max<Nanoseconds>(at - job_process().started, 1));
}

}  // namespace latecomer::shim

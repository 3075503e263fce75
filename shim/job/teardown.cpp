// SPDX-License-Identifier: BSD-3-Clause
// The end of a process: in MPI_Finalize, by exit without it, or by MPI_Abort.
#include "shim/job/teardown.hpp"

#include <unistd.h>

#include "shim/call/idle.hpp"
#include "shim/call/requests.hpp"
#include "shim/causes/message_ends.hpp"
#include "shim/causes/usage.hpp"
#include "shim/engine/engine.hpp"
#include "shim/guard.hpp"
#include "shim/job/gather.hpp"
#include "shim/job/network.hpp"
#include "shim/job/output.hpp"
#include "shim/job/prometheus.hpp"
#include "shim/job/snapshots.hpp"
#include "shim/live/live.hpp"
#include "shim/log.hpp"
#include "shim/state/clocks.hpp"
#include "shim/state/output.hpp"
#include "shim/state/process.hpp"
#include "shim/state/shared.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {
namespace {

int on_end(MPI_Comm, int, void*, void*) {
  if (!active.exchange(false)) return MPI_SUCCESS;
  snapshot_due = INT64_MAX;
  {
    const JobLock lock;
    for (CommState* s = lock->states; s; s = s->next) idle_stop(*s);
    lock->mine.process.ended = job_clocks().common_now();
  }
  end_polls();
  message_ends.end_numbers();
  lose_pending();
  sampler.stop_sampling();
  code_sampler.end_samples();
  live->since.store(now(), std::memory_order_relaxed);
  live->inside.store(profiles::LiveLine::kFinalizing, std::memory_order_relaxed);
  const Gathered gathered = job_world().together ? gather_profile() : Gathered::partly;
  const Outcome stored = attempt([&] {
    if (gathered == Gathered::whole) return job_output().spool.remove();
    if (gathered == Gathered::cut)
      warn("a rank ended before all ranks reached MPI_Finalize: to get a profile, run latecomer recover %s",
           job_output().spool.directory().c_str());
    write_snapshot(JobLock(), true);
  });
  if (!stored)
    warn(gathered == Gathered::whole ? "the profile is written, and snapshots of this rank stay beside it: %s"
                                     : "the last snapshot lacks the end of the job: %s",
         stored.why);
  attempt([&] { release_output(); });
  attempt([&] { remove_prometheus(); });
  // After everything that a killed job would leave behind.
  if (gathered == Gathered::whole) measure_network_for_profile();
  live_stop();
  return MPI_SUCCESS;
}

/// Handles a process that ends without MPI_Finalize, or that used only sessions. The destructor of a library that
/// starts before this one may still call MPI_Finalize, so observation goes on. It ends here if another thread may be
/// inside MPI. The background engine ends, because no thread may be inside MPI when MPI's own destructors run.
__attribute__((destructor)) void on_exit() {
  if (!active.load()) return;
  if (job_process().pid != getpid()) return;  // a forked child
  if (engine_runs() || job_process().threads || job_process().thread != gettid()) active.store(false);
  halt_engine();
  live_stop();
  // Other threads run on. One of them may be gone with the lock, and this one may hold it, if a signal handler called
  // exit. Then the last snapshot on disk counts.
  const auto write_last = [] {
    const JobLock lock(std::try_to_lock);
    if (!lock) return false;
    attempt([&] {
      remove_prometheus();
      write_snapshot(lock, true);
    });
    return true;
  };
  for (int i = 0; !write_last() && i < 1000; ++i) usleep(1000);
}

}  // namespace

void end_observation() noexcept { on_end(MPI_COMM_NULL, MPI_KEYVAL_INVALID, nullptr, nullptr); }

void set_end() {
  static int keyval = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_end, &keyval, nullptr);
  PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
}

}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// Courteous waiting. MPI busy-waits. (Open MPI yields if it sees more ranks than cores, and is sometimes wrong.) With
// more ranks than cores, a waiting rank takes the core from the rank that it waits for (8 ranks on 2 cores: 29 ms for
// an allreduce of one float). Two ways give the core away:
//   progress     Each wait of MPICH over UCX calls ucp_worker_progress, each wait of Open MPI opal_progress. If that
//                call finds nothing to do, yield. The program's communication stays the same, so this way is taken if
//                all ranks have the function.
//   nonblocking  Blocking collectives run in their non-blocking form, with tests and yields. MPICH may associate a
//                reduction differently there. So reductions that are not exact stay as they are, unless the policy
//                allows another rounding.
#include "shim/waiting/courteous.hpp"

#include <sched.h>

#include <atomic>

#include "shim/mpi/beneath.hpp"
#include "shim/mpi/entry.hpp"
#include "shim/mpi/progress.hpp"
#include "shim/patience.hpp"
#include "shim/state/process.hpp"

namespace latecomer::shim {

namespace {
std::atomic<bool> yields{false};
}  // namespace

namespace {

/// Runs a function that polls the network once and returns its progress. Yields the core if there was no progress.
template <typename Poll>
auto polled(Poll poll) {
  thread_local Patience patience(true);
  thread_local Nanoseconds left = 0;
  // A program that tests and computes in turns does not wait, so it keeps its core. Derived: a test of MPI that finds
  // nothing takes 0.02 us (measured, 2 ranks in shared memory), so a wait polls again within far less than 3 us.
  constexpr Nanoseconds kBetweenPolls = 3'000;
  const auto did = poll();
  network_progress += static_cast<unsigned>(did);
  if (!yields.load(std::memory_order_relaxed)) return did;
  if (did != 0 || now() - left > kBetweenPolls) patience.reset();
  // MPI holds its lock here, and other threads may wait for it. So do not sleep if the program has threads.
  if (did == 0 && job_process().threads) sched_yield();
  else if (did == 0) patience.wait();
  left = now();
  return did;
}

}  // namespace

// Functions of the network's library, not of MPI. The one of the library beneath is intercepted, and only while waits
// are courteous or the engine counts progress.
LATECOMER_ENTRY(int, opal_progress, (void)) {
  return polled([] { return next::opal_progress(); });
}
LATECOMER_ENTRY(unsigned, ucp_worker_progress, (void* worker)) {
  return polled([&] { return next::ucp_worker_progress(worker); });
}

bool yields_by_itself() {
  static const bool yields = waits_yield(find_function);
  return yields;
}

bool yield_in_progress(bool on) {
  if (!has_next(beneath().progress)) return false;
  yields = on;
  aim_entry(beneath().progress, on);
  return true;
}

void count_progress() {
  if (has_next(beneath().progress)) aim_entry(beneath().progress, true);
}

int wait_courteously(MPI_Request request) {
  Patience patience(true);
  for (;;) {
    int done = 0;
    const int rc = PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (rc != MPI_SUCCESS || done) return rc;
    patience.wait();
  }
}

}  // namespace latecomer::shim

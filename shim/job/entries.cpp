// SPDX-License-Identifier: BSD-3-Clause
// What latecomer does when the job starts, ends or is informed, and the handler of MPI_Pcontrol.
#include "shim/job/entries.hpp"

#include <unistd.h>

#include <cstdlib>

#include "shim/guard.hpp"
#include "shim/mpi/beneath.hpp"
#include "shim/mpi/entry.hpp"
#include "shim/state/clocks.hpp"
#include "shim/state/output.hpp"
#include "shim/state/process.hpp"
#include "shim/state/shared.hpp"
#include "shim/waiting/courteous.hpp"

namespace latecomer::shim {
namespace {

/// With more ranks than cores on this machine, MPI_Init itself would be slow. MPI_Init then decides for the job.
void yield_during_init() {
  const char* size = std::getenv(beneath().ranks_init);
  if (size && std::atol(size) > sysconf(_SC_NPROCESSORS_ONLN)) yield_in_progress(true);
}

}  // namespace

bool begin_mpi(int required) {
  job_process().entered = now();
  yield_during_init();
  expect_start(true);
  bool engine = false;
  attempt([&] { engine = required < MPI_THREAD_MULTIPLE && engine_wanted(); });
  return engine;
}

void say_edge(double fraction) {
  if (!active.load(std::memory_order_acquire) || !(fraction >= 0 && fraction <= 1)) return;
  engine_edge(fraction, job_clocks().common_now());
  const JobLock lock;
  job_process().edge_said = true;
  ++lock->mine.edges;
  lock->mine.edge_sum += fraction;
}

/// Gets MPI_Pcontrol's first argument, and the register of a first double argument.
extern "C" LATECOMER_HIDDEN void latecomer_pcontrol(int level, double fraction) {
  if (level == 5711) say_edge(fraction);  // LATECOMER_EDGE
}

int flush_profile() try {
  if (!active.load() || !job_output().spool.begun()) return 1;
  const KeepErrno keep;
  const JobLock lock;
  return write_snapshot(lock, false) ? 0 : 1;
} catch (...) {
  return 1;
}

// MPI_Pcontrol has unknown arguments, which a handler in C cannot pass on. The stub calls the function in assembly and
// passes every argument on unchanged.
LATECOMER_PASSING_ENTRY(MPI_Pcontrol, latecomer_pcontrol)

}  // namespace latecomer::shim

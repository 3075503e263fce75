// SPDX-License-Identifier: BSD-3-Clause
// The ends that a process can come to: MPI_Finalize, an exit without it, MPI_Abort.
#include <unistd.h>

#include <mutex>

#include "shim/dispatch/engine/engine.hpp"
#include "shim/dispatch/idle.hpp"
#include "shim/guard.hpp"
#include "shim/job/parts.hpp"
#include "shim/log.hpp"

namespace latecomer::shim {
namespace {

int on_end(MPI_Comm, int, void*, void*) {
  if (!active.exchange(false)) return MPI_SUCCESS;
  idle_stop();
  Job& j = job();
  try {
    if (j.together && gather_profile(j)) {
      j.spool.remove();
    } else if (!(j.profile_gathered && j.rank == 0)) {  // there, what rank 0 knew is in the profile that it wrote
      const JobLock lock;
      write_spool(j, true);
      if (j.together)
        warn("a rank ended before all of them had met in MPI_Finalize: latecomer recover %s",
             j.spool.directory().c_str());
    }
  } catch (...) {
    warn("out of memory while writing the profile");
  }
  return MPI_SUCCESS;
}

/// A process that ends without MPI_Finalize, or that used sessions only.
__attribute__((destructor)) void on_exit() {
  if (!active.exchange(false)) return;
  Job& j = job();
  if (j.pid != getpid()) return;  // a forked child
  halt_engine();
  try {
    write_spool(j, true);
  } catch (...) {
  }
}

}  // namespace

void set_end(Job&) {
  static int keyval = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_end, &keyval, nullptr);
  PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
}

void before_abort() noexcept {
  if (!active.load() || inside) return;
  try {
    std::unique_lock lock(job().mutex, std::defer_lock);
    if (job().threads && !lock.try_lock()) return;
    write_spool(job(), false);
  } catch (...) {
  }
}

}  // namespace latecomer::shim

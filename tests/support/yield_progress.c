// SPDX-License-Identifier: BSD-3-Clause
// Test support: makes native MPICH (ch4:ucx) give its core away while it waits. Without it, more ranks than
// cores collapse: 8 ranks on 2 cores need 29 ms for an allreduce of one float. Preloaded on both sides of
// every comparison, and named in every result that was measured with it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

unsigned ucp_worker_progress(void* worker);
unsigned ucp_worker_progress(void* worker) {
  static unsigned (*next)(void*);
  if (!next) next = (unsigned (*)(void*))dlsym(RTLD_NEXT, "ucp_worker_progress");
  const unsigned did = next(worker);
  if (did == 0) sched_yield();
  return did;
}

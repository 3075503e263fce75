// SPDX-License-Identifier: BSD-3-Clause
// MPI_THREAD_MULTIPLE: several communicators at once, one thread each, created and freed during the run.
#include "threads.h"

enum { kThreads = 3 };

static void* work(void* argument) {
  const int me = (int)(long)argument;
  for (int round = 0; round < 4; ++round) {
    MPI_Comm comm;
    MPI_Comm_dup(comms[me], &comm);
    for (int i = 0; i < 60; ++i) {
      double in[200], out[200];
      for (int k = 0; k < 200; ++k) in[k] = rank * (me + 1) + k;
      MPI_Allreduce(in, out, 200, MPI_DOUBLE, MPI_SUM, comm);
      if (out[199] != size * (size - 1) / 2 * (me + 1) + size * 199.0) bad[me] = 1;
    }
    MPI_Comm_free(&comm);
  }
  return NULL;
}

int main(int argc, char** argv) { return run_threads(&argc, &argv, kThreads, kThreads, work); }

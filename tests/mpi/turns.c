/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 1 computes and waits for rank 0 by turns, beside a process that is always busy on its core.
 * Usage: turns ROUNDS COMPUTE_MS WAIT_MS WAY. Each round, rank 1 computes COMPUTE_MS of processor time and tells rank 0
 * so, which sleeps WAIT_MS. WAY: they then meet in an allreduce (reduce), or rank 0 sends a message (receive). several:
 * the same behind 20 short messages.
 * Rank 1 prints what the kernel says of its own computing: milliseconds of processor time, and of waiting for the
 * core. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "work.h"

/* Milliseconds for which this thread was ready to run without a core. */
static double without_core(void) {
  char text[96] = "";
  FILE* file = fopen("/proc/self/schedstat", "r");
  if (!file || !fgets(text, sizeof text, file)) exit(3);
  fclose(file);
  char* at = text;
  strtoull(text, &at, 10);
  return 1e-6 * (double)strtoull(at, NULL, 10);
}

static void burn_beside(void) {
  if (fork() != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (volatile unsigned i = 0;; ++i) {
  }
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const int rounds = atoi(argv[1]);
  const double work = atof(argv[2]), wait = atof(argv[3]);
  const char* number = getenv(getenv("PMI_RANK") ? "PMI_RANK" : "OMPI_COMM_WORLD_RANK");
  const int rank = number ? atoi(number) : 0;
  cpu_set_t allowed, mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return 3;
  int core = 0;
  for (int skip = rank % 2; !CPU_ISSET(core, &allowed) || skip-- > 0;) ++core;
  CPU_SET(core, &mine);
  sched_setaffinity(0, sizeof mine, &mine);
  calibrate();
  if (rank == 1) burn_beside();
  MPI_Init(&argc, &argv);
  int value = rank, sum = 0;
  double own = 0, delay = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < rounds; ++i) {
    if (rank == 1) {
      const double cpu = seconds(CLOCK_THREAD_CPUTIME_ID), before = without_core();
      compute(work);
      own += seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
      delay += without_core() - before;
    }
    if (strcmp(argv[4], "several") == 0)
      for (int k = 0; k < 20 && rank < 2; ++k)
        MPI_Sendrecv(&value, 1, MPI_INT, 1 - rank, 1, &sum, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    if (rank == 0) {
      MPI_Recv(&sum, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      nap(wait);
    }
    if (strcmp(argv[4], "reduce") == 0) MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    else if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
    else if (rank == 1) MPI_Recv(&sum, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (rank == 1) printf("%.3f %.3f\n", 1e3 * own, delay);
  MPI_Finalize();
  return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
   Usage: beside MS BUSY: all ranks compute for MS milliseconds of processor time. With BUSY, each rank starts a process
   that computes meanwhile. Prints the processor time of these processes and of the ranks, in ns. */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double processor_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

int main(int argc, char** argv) {
  int rank, ranks;
  if (argc < 3) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  pid_t child = -1;
  if (atoi(argv[2]) && (child = fork()) == 0) {
    execl("/bin/sh", "sh", "-c", "while :; do :; done", (char*)NULL);
    _exit(1);
  }
  const double begin = processor_ns();
  while (processor_ns() - begin < 1e6 * atof(argv[1]))
    for (volatile int i = 0; i < 100000; ++i) continue;
  double mine[2] = {0, 0}, all[2] = {0, 0};
  if (child > 0) {
    struct rusage used;
    kill(child, SIGKILL);
    wait4(child, NULL, 0, &used);
    mine[0] = 1e9 * (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
              1e3 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  }
  mine[1] = processor_ns() - begin;
  MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%.0f %.0f\n", all[0], all[1]);
  return MPI_Finalize();
}

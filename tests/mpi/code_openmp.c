/* SPDX-License-Identifier: BSD-3-Clause */
/* Two threads of OpenMP compute before every allreduce, in sweep().
 * Usage: code_openmp WHAT RANK CALLS MILLISECONDS.
 * In loop, both threads of one rank compute four times as long. In thread, only its second thread does, and the first
 * one waits for it. fork is as thread, and every rank forks children that end by exit or exec. In begin, a thread of
 * the program's own computes and ends before each call, four times as long on one rank. */
#include <mpi.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "children.h"
#include "work.h"

static volatile double sink;

/* The compiler keeps it apart. */
__attribute__((noinline)) static void sweep(long n) {
  double x = 1;
  for (long i = 0; i < n; ++i) x = x * 0.999999 + 1;
  sink = x;
}

static void* compute_beside(void* n) {
  sweep(*(const long*)n);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  int level, rank;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* const what = argv[1];
  const int is_late = rank == atoi(argv[2]), calls = atoi(argv[3]);
  double per_ms = 0; /* of rank 0, so that all do the same work */
  const double begin = seconds(CLOCK_THREAD_CPUTIME_ID);
  sweep(20 * 1000 * 1000);
  per_ms = 20e6 / (1e3 * (seconds(CLOCK_THREAD_CPUTIME_ID) - begin));
  MPI_Bcast(&per_ms, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  long n = (long)(per_ms * atof(argv[4]));
  const int all = is_late && strcmp(what, "loop") == 0;
  const int second = is_late && (strcmp(what, "thread") == 0 || strcmp(what, "fork") == 0);
  double sum = 0, own = rank;
  for (int call = 0; call < calls; ++call) {
    if (strcmp(what, "begin") == 0) {
      long m = is_late ? 4 * n : n;
      pthread_t beside;
      pthread_create(&beside, NULL, compute_beside, &m);
      pthread_join(beside, NULL);
    } else {
#pragma omp parallel num_threads(2)
      sweep(all || (second && omp_get_thread_num() > 0) ? 4 * n : n);
    }
    if (strcmp(what, "fork") == 0) disturb(call, NULL, 0);
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}

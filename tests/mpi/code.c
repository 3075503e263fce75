/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank is late before every allreduce, by code that is known.
 * Usage: code WHAT RANK CALLS MILLISECONDS.
 * In hot, it computes longer in flux(), beside update() and relax(), which are equal. In alike, it computes 1.5 times
 * as long in all three. In spread, it also runs ten functions for a fifth of the time each. In sleep, it sleeps between
 * MPI_Waitall and the allreduce. In thread, its second thread computes meanwhile. fork is as hot, and every rank forks
 * children that compute and end by exit or exec. In overflow, it computes once for all calls, without MPI. killed is as
 * hot, and the rank is killed at the end. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "children.h"
#include "work.h"

static volatile double sink;

/* Functions of the same work, which the compiler keeps apart. */
#define WORK(name, add)                                  \
  __attribute__((noinline)) static void name(long n) {   \
    double x = add;                                      \
    for (long i = 0; i < n; ++i) x = x * 0.999999 + add; \
    sink = x;                                            \
  }
WORK(flux, 1.0)
WORK(update, 2.0)
WORK(relax, 3.0)
WORK(part0, 4.0)
WORK(part1, 5.0)
WORK(part2, 6.0)
WORK(part3, 7.0)
WORK(part4, 8.0)
WORK(part5, 9.0)
WORK(part6, 10.0)
WORK(part7, 11.0)
WORK(part8, 12.0)
WORK(part9, 13.0)
static void (*const kParts[])(long) = {part0, part1, part2, part3, part4, part5, part6, part7, part8, part9};

static void* compute_beside(void* n) {
  flux(*(const long*)n);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  MPI_Init(&argc, &argv);
  const char* const what = argv[1];
  const int late = atoi(argv[2]), calls = atoi(argv[3]);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double per_ms = 0; /* of rank 0, so that all do the same work */
  const double begin = seconds(CLOCK_THREAD_CPUTIME_ID);
  flux(20 * 1000 * 1000);
  per_ms = 20e6 / (1e3 * (seconds(CLOCK_THREAD_CPUTIME_ID) - begin));
  MPI_Bcast(&per_ms, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  const long n = (long)(per_ms * atof(argv[4]));
  const int is_late = rank == late;
  const int hot = is_late && (strcmp(what, "hot") == 0 || strcmp(what, "fork") == 0 || strcmp(what, "killed") == 0);
  const int alike = is_late && strcmp(what, "alike") == 0;
  double sum = 0, own = rank;
  if (strcmp(what, "overflow") == 0) {
    flux(is_late ? n * calls : n);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  for (int call = 0; call < calls; ++call) {
    update(alike ? n * 3 / 2 : n);
    MPI_Request both[2];
    double in = 0;
    MPI_Irecv(&in, 1, MPI_DOUBLE, (rank + 1) % size, 0, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(&own, 1, MPI_DOUBLE, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &both[1]);
    relax(alike ? n * 3 / 2 : n);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    pthread_t beside;
    const int threaded = is_late && strcmp(what, "thread") == 0;
    long twice = 2 * n;
    if (threaded) pthread_create(&beside, NULL, compute_beside, &twice);
    flux(hot ? n * 5 / 2 : threaded ? 2 * n : alike ? n * 3 / 2 : n);
    if (threaded) pthread_join(beside, NULL);
    if (is_late && strcmp(what, "spread") == 0)
      for (int i = 0; i < 10; ++i) kParts[i](n / 5);
    if (is_late && strcmp(what, "sleep") == 0) nap(atof(argv[4]));
    if (strcmp(what, "fork") == 0) disturb(call, relax, n);
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  if (is_late && strcmp(what, "killed") == 0) kill(getpid(), SIGKILL);
  MPI_Finalize();
  return 0;
}

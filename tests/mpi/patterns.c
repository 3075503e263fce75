// SPDX-License-Identifier: BSD-3-Clause
// Arrival patterns known by construction: rank r arrives r * STEP late at the first site, and only rank 1 is late at
// the second. With ARRIVALS=FOLDER each rank writes its arrivals at the first site, in ns of its kernel's clock, one
// line per call.
// Usage: patterns CALLS STEP_US
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void pause_us(long us) {
  struct timespec t = {us / 1000000, us % 1000000 * 1000};
  nanosleep(&t, NULL);
}
static long long kernel_time(void) {
  struct timespec t;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static __attribute__((noinline)) void staircase(const double* in, double* out) {
  MPI_Allreduce(in, out, 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
static __attribute__((noinline)) void one_late(const double* in, double* out) {
  MPI_Allreduce(in, out, 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  double in[100] = {0}, out[100];
  const int calls = argc > 1 ? atoi(argv[1]) : 40;
  const long step = argc > 2 ? atol(argv[2]) : 10000;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  long long* arrivals = calloc(calls, sizeof *arrivals);
  for (int i = 0; i < calls; ++i) {
    pause_us(rank * step);
    arrivals[i] = kernel_time();
    staircase(in, out);
    if (rank == 1) pause_us(step);
    one_late(in, out);
  }
  if (getenv("ARRIVALS")) {
    char path[4096];
    snprintf(path, sizeof path, "%s/arrivals.%d", getenv("ARRIVALS"), rank);
    FILE* file = fopen(path, "w");
    for (int i = 0; file && i < calls; ++i) fprintf(file, "%lld\n", arrivals[i]);
    if (file) fclose(file);
  }
  free(arrivals);
  MPI_Finalize();
  return 0;
}

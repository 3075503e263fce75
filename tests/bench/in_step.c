// SPDX-License-Identifier: BSD-3-Clause
// Processor time per rank in allreduces that do nothing (null_collectives.c), with the ranks kept in step by barriers
// that latecomer does not see. Prints the leader, the median and the most of any rank, in nanoseconds per call, and the
// same of the memory that a rank has for itself (Private_Dirty), in KiB.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long processor_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double private_kib(void) {
  FILE* file = fopen("/proc/self/smaps_rollup", "r");
  char line[256];
  double kib = -1;
  while (file && fgets(line, sizeof line, file)) sscanf(line, "Private_Dirty: %lf", &kib);
  if (file) fclose(file);
  return kib;
}

static void print_ranks(double mine, int rank, int size) {
  double* all = malloc(sizeof mine * (size_t)size);
  PMPI_Gather(&mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    const double leader = all[0];
    qsort(all, (size_t)size, sizeof *all, ascending);
    printf("  %8.0f  %8.0f  %8.0f", leader, all[size / 2], all[size - 1]);
  }
  free(all);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  enum { kRounds = 200, kCalls = 64, kWarm = 20 };
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  long long spent = 0;
  for (int round = 0; round < kRounds; ++round) {
    PMPI_Barrier(MPI_COMM_WORLD);
    const long long begin = processor_ns();
    double in = 1, out = 0;
    for (int i = 0; i < kCalls; ++i) MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (round >= kWarm) spent += processor_ns() - begin;
  }
  const double memory = private_kib();
  if (rank == 0) printf("%6d", size);
  print_ranks((double)spent / ((kRounds - kWarm) * kCalls), rank, size);
  print_ranks(memory, rank, size);
  if (rank == 0) printf("\n");
  MPI_Finalize();
  return 0;
}

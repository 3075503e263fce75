// SPDX-License-Identifier: BSD-3-Clause
// An iterative program with one late process. Every iteration "computes" (sleeps), then sums a vector over all
// processes. The program measures its own times. With `reduce` only rank 0 gets the sum, and a barrier precedes the
// next computation.
// Usage: late_process [ITERATIONS [FLOATS [LATE_RANK [DELAY_MS [allreduce|reduce]]]]]
// LATE_RANK: a rank, `random` (another rank every iteration), or `moves:N` (the next rank every N iterations).
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void compute(double ms) {
  struct timespec t = {(time_t)(ms / 1000), (long)((ms - 1000 * (long)(ms / 1000)) * 1e6)};
  nanosleep(&t, NULL);
}

/* The late rank of an iteration. All ranks compute the same one. */
static int late_in(int iteration, const char* who, int size) {
  if (strncmp(who, "moves:", 6) == 0) return iteration / (atoi(who + 6) > 0 ? atoi(who + 6) : 1) % size;
  if (strcmp(who, "random") != 0) return atoi(who);
  unsigned long long x = (unsigned long long)iteration * 6364136223846793005ULL + 1442695040888963407ULL;
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  return (int)(x % (unsigned)size);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int iterations = argc > 1 ? atoi(argv[1]) : 300;
  const int floats = argc > 2 ? atoi(argv[2]) : 262144;
  const char* late = argc > 3 ? argv[3] : "1";
  const double delay_ms = argc > 4 ? atof(argv[4]) : 8;
  float* mine = malloc(sizeof(float) * (size_t)floats);
  float* sum = malloc(sizeof(float) * (size_t)floats);
  const char* op = argc > 5 ? argv[5] : "allreduce";
  const int to_root = strcmp(op, "reduce") == 0;
  double in_operation = 0;
  int wrong = 0;
  for (int i = 0; i < floats; ++i) mine[i] = (float)(rank + i % 5);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int iteration = 0; iteration < iterations; ++iteration) {
    compute(rank == late_in(iteration, late, size) ? 2 + delay_ms : 2);
    const double before = MPI_Wtime();
    if (to_root) MPI_Reduce(mine, sum, floats, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
    else MPI_Allreduce(mine, sum, floats, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    in_operation += MPI_Wtime() - before;
    if (to_root) MPI_Barrier(MPI_COMM_WORLD);
    if (!to_root || rank == 0) wrong += sum[floats - 1] != (float)(size * (size - 1) / 2 + size * ((floats - 1) % 5));
  }
  const double total = MPI_Wtime() - start;
  double mean = 0;
  MPI_Reduce(&in_operation, &mean, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("%d processes, %d iterations, %d floats, rank %s late by %g ms: %.3f s, %.3f ms per %s, %d wrong\n", size,
           iterations, floats, late, delay_ms, total, 1e3 * mean / size / iterations, op, wrong);
  MPI_Finalize();
  return wrong != 0;
}

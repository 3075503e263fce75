// SPDX-License-Identifier: BSD-3-Clause
// A program with a given arrival pattern, for tests/bench/wire: every iteration sleeps, then calls one collective.
// Usage: wire OP ITERATIONS FLOATS DELAYS
// OP: allreduce, reduce or bcast. DELAYS: milliseconds, one per rank and separated by commas, or random:MS
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nap.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 5) {
    fprintf(stderr, "usage: wire OP ITERATIONS FLOATS DELAYS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const char op = *argv++[1];
  const int iterations = atoi(argv[1]), floats = atoi(argv[2]);
  const int is_random = strncmp(argv[3], "random:", 7) == 0;
  double delay = is_random ? atof(argv[3] + 7) : atof(argv[3]);
  const char* next = argv[3];
  for (int r = 0; !is_random && r < rank && (next = strchr(next, ',')) != NULL; ++r) delay = atof(++next);
  float* mine = malloc(sizeof(float) * (size_t)floats);
  float* sum = malloc(sizeof(float) * (size_t)floats);
  for (int i = 0; i < floats; ++i) mine[i] = (float)(rank + i % 5);
  srand((unsigned)rank + 1);
  int wrong = 0;
  const int root = 0, sums = op != 'b', here = op == 'a' || rank == root || !sums;
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int iteration = 0; iteration < iterations; ++iteration) {
    nap(2 + (is_random ? delay * rand() / RAND_MAX : delay));
    if (op == 'a') MPI_Allreduce(mine, sum, floats, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (op == 'r') MPI_Reduce(mine, sum, floats, MPI_FLOAT, MPI_SUM, root, MPI_COMM_WORLD);
    if (op == 'b') {
      memcpy(sum, mine, sizeof(float) * (size_t)floats);
      MPI_Bcast(sum, floats, MPI_FLOAT, root, MPI_COMM_WORLD);
    }
    for (int i = 0; i < floats && here; ++i)
      wrong += sum[i] != (float)(sums ? size * (size - 1) / 2 + size * (i % 5) : i % 5);
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("%d ranks, %.3f s, %d wrong\n", size, MPI_Wtime() - start, wrong);
    fflush(stdout);
  }
  MPI_Finalize();
  return wrong != 0;
}

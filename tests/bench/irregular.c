// SPDX-License-Identifier: BSD-3-Clause
// Run time of gathervs or scattervs of given sizes, from the first arrival to the last exit by the program's own clock.
// A barrier before each call balances the arrivals. The first half of the calls does not count: a plan is in force
// after it.
// Usage: irregular gatherv|scatterv ITERATIONS ROOT BYTES[,BYTES...]     one size per rank
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int scatters = argc > 1 && strcmp(argv[1], "scatterv") == 0, iterations = argc > 2 ? atoi(argv[2]) : 100,
            root = argc > 3 ? atoi(argv[3]) : 0;
  int *counts = calloc((size_t)size, sizeof(int)), *places = calloc((size_t)size, sizeof(int)), total = 0, n = 0;
  for (char* at = argc > 4 ? strtok(argv[4], ",") : NULL; at && n < size; at = strtok(NULL, ","))
    counts[n++] = atoi(at);
  for (int r = 0; r < size; ++r) {
    places[r] = total;
    total += counts[r];
  }
  char *all = calloc((size_t)total + 1, 1), *own = calloc((size_t)counts[rank] + 1, 1);
  double sum = 0;
  for (int i = 0; i < iterations; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double arrival = MPI_Wtime();
    if (scatters) MPI_Scatterv(all, counts, places, MPI_BYTE, own, counts[rank], MPI_BYTE, root, MPI_COMM_WORLD);
    else MPI_Gatherv(own, counts[rank], MPI_BYTE, all, counts, places, MPI_BYTE, root, MPI_COMM_WORLD);
    const double out = MPI_Wtime();
    double first, last;
    MPI_Allreduce(&arrival, &first, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&out, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (i >= iterations / 2) sum += last - first;
  }
  if (rank == 0) {
    printf("run time %.6f ms\n", 1e3 * sum / (iterations - iterations / 2));
    fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}

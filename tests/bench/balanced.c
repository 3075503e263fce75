// SPDX-License-Identifier: BSD-3-Clause
// Balanced allreduces of 8 B to 1 MiB without computation between them. Prints their time in seconds. Usage: balanced
// CALLS
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int calls = argc > 1 ? atoi(argv[1]) : 20000;
  const int most = 1 << 17;
  double *in = calloc((size_t)most, sizeof *in), *out = calloc((size_t)most, sizeof *out);
  unsigned long state = 1;
  for (int i = 0; i < 200; ++i) MPI_Allreduce(in, out, 1 << (i % 18), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < calls; ++i) {
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    MPI_Allreduce(in, out, 1 << ((state >> 33) % 18), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  const double took = MPI_Wtime() - begin;
  if (rank == 0) printf("%.6f\n", took);
  MPI_Finalize();
  return 0;
}

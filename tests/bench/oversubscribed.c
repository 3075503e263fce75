// SPDX-License-Identifier: BSD-3-Clause
// Time of one allreduce with more ranks than cores. Usage: oversubscribed TITLE SECONDS FLOATS...
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int a = 3; a < argc; ++a) {
    const int count = atoi(argv[a]);
    float* in = calloc((size_t)count, sizeof *in);
    float* out = calloc((size_t)count, sizeof *out);
    int calls = 0, more = 1;
    MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    while (more) {
      for (int i = 0; i < 5; ++i) MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      calls += 5;
      more = MPI_Wtime() - begin < atof(argv[2]);
      MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) {
      printf("%-24s %d ranks, %8d floats: %10.3f ms per allreduce\n", argv[1], size, count,
             (MPI_Wtime() - begin) / calls * 1e3);
      fflush(stdout);
    }
    free(in);
    free(out);
  }
  MPI_Finalize();
  return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* 300 allreduces and 150 barriers. Prints "right". */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank, size, total;
  static double a[500], b[500];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int k = 0; k < 500; ++k) a[k] = rank;
  for (int i = 1; i <= 150; ++i) {
    MPI_Allreduce(a, b, 500, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (total != size * (size - 1) / 2 || (int)b[499] != total) MPI_Abort(MPI_COMM_WORLD, 4);
  }
  if (rank == 0) puts("right");
  MPI_Finalize();
  return 0;
}

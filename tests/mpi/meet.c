// SPDX-License-Identifier: BSD-3-Clause
// The shortest job: one allreduce of all ranks.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, sum = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (sum != size) MPI_Abort(MPI_COMM_WORLD, 1);
  if (rank == 0) puts("right");
  MPI_Finalize();
  return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Collective writes to a file, whose plugin calls MPI's functions, and one allreduce after each. Usage: files PATH */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 5; ++i) {
    MPI_File file;
    MPI_Datatype blocks;
    char buffer[1000];
    for (int k = 0; k < 1000; ++k) buffer[k] = (char)rank;
    MPI_Type_vector(10, 100, 100 * size, MPI_CHAR, &blocks);
    MPI_Type_commit(&blocks);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, 100 * rank, MPI_CHAR, blocks, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, buffer, 1000, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Type_free(&blocks);
    int sum;
    PMPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* of the program: it counts on Open MPI */
    if (sum != size * (size - 1) / 2) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (rank == 0) puts("right");
  MPI_Finalize();
  return 0;
}

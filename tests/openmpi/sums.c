/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of tests/mpi/fortran.F90 in C, by MPI_ or, with `direct`, by PMPI_. Usage: sums PATH [direct] */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define CALL(function) (direct ? P##function : function)

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int direct = argc > 2 && strcmp(argv[2], "direct") == 0;
  int rank, size, total;
  static double a[500], b[500];
  CALL(MPI_Init)(&argc, &argv);
  CALL(MPI_Comm_rank)(MPI_COMM_WORLD, &rank);
  CALL(MPI_Comm_size)(MPI_COMM_WORLD, &size);
  for (int k = 0; k < 500; ++k) a[k] = rank;
  for (int i = 1; i <= 150; ++i) {
    CALL(MPI_Allreduce)(a, b, 500, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    CALL(MPI_Barrier)(MPI_COMM_WORLD);
    CALL(MPI_Allreduce)(&rank, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (total != size * (size - 1) / 2 || (int)b[499] != total) MPI_Abort(MPI_COMM_WORLD, 4);
    if (i % 30 == 0) {
      MPI_File file;
      CALL(MPI_File_open)(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
      CALL(MPI_File_write_at_all)(file, 4000 * (MPI_Offset)rank, a, 500, MPI_DOUBLE, MPI_STATUS_IGNORE);
      CALL(MPI_File_close)(&file);
    }
  }
  if (rank == 0) puts(" right"); /* as Fortran prints it */
  CALL(MPI_Finalize)();
  return 0;
}

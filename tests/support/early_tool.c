// SPDX-License-Identifier: BSD-3-Clause
// Another preloaded tool, which brings its ranks together inside its MPI_Init.
#include <mpi.h>

int MPI_Init(int* argc, char*** argv) {
  const int rc = PMPI_Init(argc, argv);
  if (rc == MPI_SUCCESS) MPI_Barrier(MPI_COMM_WORLD);
  return rc;
}

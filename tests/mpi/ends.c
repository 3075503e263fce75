/* SPDX-License-Identifier: BSD-3-Clause
   Usage: ends INIT_MS CALLS END_MS: rank 1 comes INIT_MS late to MPI_Init and END_MS late to MPI_Finalize; between them
   all ranks call MPI_Barrier CALLS times. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdlib.h>

#include "../bench/nap.h"

int main(int argc, char** argv) {
  const char* launched = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
  int rank;
  if (argc < 4 || !launched) return 2;
  if (atoi(launched) == 1) nap(atof(argv[1]));
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (long i = atol(argv[2]); i > 0; --i) MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) nap(atof(argv[3]));
  return MPI_Finalize();
}

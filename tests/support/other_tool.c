// SPDX-License-Identifier: BSD-3-Clause
// Another preloaded tool, for stacking before or behind latecomer. Counts the allreduces and broadcasts that reach it,
// and keeps MPI_Init to itself, as such tools do.
#include <mpi.h>
#include <stdio.h>

static int allreduces, broadcasts;

int MPI_Init(int* argc, char*** argv) { return PMPI_Init(argc, argv); }
int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  ++allreduces;
  return PMPI_Allreduce(in, out, count, type, op, comm);
}
int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  ++broadcasts;
  return PMPI_Bcast(data, count, type, root, comm);
}
int MPI_Finalize(void) {
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    printf("other tool: %d allreduces, %d broadcasts\n", allreduces, broadcasts);
    fflush(stdout);
  }
  return PMPI_Finalize();
}

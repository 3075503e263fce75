// SPDX-License-Identifier: BSD-3-Clause
// Counts latecomer's own operations on its communicators, with tests/support/spy_pmpi preloaded. The spy sees PMPI
// calls, and the program's own calls pass on as MPI calls. Usage: private [plans]
#include <mpi.h>
#include <stdio.h>

__attribute__((weak)) int spy_count(MPI_Comm comm);

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm rooted, dup;
  int rank, data = 0;
  double in[100] = {0}, out[100];
  if (!spy_count) MPI_Abort(MPI_COMM_WORLD, 3);
  const int at_start = spy_count(MPI_COMM_WORLD);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Comm_dup(MPI_COMM_WORLD, &rooted);
  for (int i = 0; i < 300; ++i) {
    MPI_Allreduce(in, out, 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(in, out, 100, MPI_DOUBLE, MPI_SUM, dup);
    MPI_Bcast(&data, 1, MPI_INT, 0, rooted);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  // At start, the private communicator was created from MPI_COMM_WORLD. Later comes one agreement, at a point without
  // waits, and with plans one meeting per epoch, of two operations. An epoch has 4 calls or more.
  const int world = spy_count(MPI_COMM_WORLD) - at_start, own = spy_count(dup), broadcasts = spy_count(rooted);
  const int most = argc > 1 ? 1 + 2 * (300 / 4) : 1;
  const int bad = at_start != 1 || world != 0 || own < 1 || own > most || broadcasts != 0;
  printf("rank %d: at start %d, later: world %d, agreement %d, rooted %d\n", rank, at_start, world, own, broadcasts);
  MPI_Comm_free(&dup);
  MPI_Comm_free(&rooted);
  MPI_Finalize();
  return bad;
}

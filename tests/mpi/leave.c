// SPDX-License-Identifier: BSD-3-Clause
// A run of some seconds whose ranks leave in different ways. Usage: leave CASE MILLISECONDS
//   finalize: all reach MPI_Finalize. exit: the last rank calls _exit before. late: the last rank reaches MPI_Finalize
//   a second after the others. communicators: half of the ranks free their communicator early, the others go on in
//   theirs.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../bench/nap.h"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* how = argv[1];
  const int ms = atoi(argv[2]), calls = 20;
  int rank, size, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < calls; ++i) {
    nap(ms / calls);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  if (sum != size * (size - 1) / 2) return 3;
  const int last = rank == size - 1;
  if (strcmp(how, "exit") == 0 && last) _exit(0);
  if (strcmp(how, "late") == 0 && last) nap(1000);
  if (strcmp(how, "communicators") == 0) {
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    if (rank % 2 == 0) MPI_Comm_free(&half);
    else
      for (int i = 0; i < 200; ++i) MPI_Barrier(half);
  }
  if (rank == 0) {
    puts("right");
    fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}

// SPDX-License-Identifier: BSD-3-Clause
// Rank 2 gathers fewer ints than the root expects, which MPI forbids. The root must get an error or native's result,
// and never another result. Also uses inter-communicators with arbitrary insignificant arguments. Prints the outcome.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  // Two groups: the first ranks, whose rank 0 gathers from the others.
  MPI_Comm half, across;
  MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < size / 2 ? size / 2 : 0, 7, &across);
  const MPI_Datatype nonsense = (MPI_Datatype)0x12345678;
  int got[64], mine[8], counts[64], places[64], wrong = 0;
  for (int i = 0; i < 8; ++i) mine[i] = 100 * rank + i;
  for (int r = 0; r < size; ++r) {
    counts[r] = 4;
    places[r] = 4 * r;
  }
  if (rank >= size / 2) MPI_Gatherv(mine, 4, MPI_INT, NULL, NULL, NULL, nonsense, 0, across);
  else
    MPI_Gatherv(NULL, -9, nonsense, rank == 0 ? got : NULL, rank == 0 ? counts : NULL, rank == 0 ? places : NULL,
                rank == 0 ? MPI_INT : nonsense, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, across);
  for (int i = 0; rank == 0 && i < 4 * (size - size / 2); ++i) wrong += got[i] != 100 * (size / 2 + i / 4) + i % 4;
  if (rank == 0) {
    printf("across: %s\n", wrong ? "wrong" : "right");
    fflush(stdout);
  }
  MPI_Comm_free(&across);
  MPI_Comm_free(&half);

  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int rc = MPI_Gatherv(mine, rank == 2 ? 3 : 4, MPI_INT, got, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
  wrong = 0;
  for (int r = 0; r < size; ++r)
    for (int i = 0; i < (r == 2 ? 3 : 4); ++i) wrong += got[4 * r + i] != 100 * r + i;
  if (rank == 0) {
    printf("short: %s\n", rc != MPI_SUCCESS ? "an error" : wrong ? "wrong" : "right");
    fflush(stdout);
  }
  if (rank == 0) {  // the launcher forwards the output, then ends the other ranks
    sleep(1);
    MPI_Abort(MPI_COMM_WORLD, 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return 0;
}

// SPDX-License-Identifier: BSD-3-Clause
// After warming up, thousands of calls of every kind without an allocation by latecomer. Runs with
// tests/support/count_allocations preloaded.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

__attribute__((weak)) long count_allocations(int on);

static double in[2000], out[2000];

/* `late`: this rank comes last in a few calls of each kind. The first such call of a rank takes memory for its row. */
static void work(int calls, int late) {
  const struct timespec nap = {0, 1000000};
  for (int i = 0; i < calls; ++i) {
    MPI_Request request;
    int data = i;
    const int naps = late && i < 3;
    if (naps) nanosleep(&nap, NULL);
    MPI_Allreduce(in, out, 2000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (naps) nanosleep(&nap, NULL);
    MPI_Allreduce(in, out, 10 + i % 7, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Bcast(&data, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (naps) nanosleep(&nap, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    if (naps) nanosleep(&nap, NULL);
    MPI_Iallreduce(in, out, 5, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (!count_allocations) {
    printf("count_allocations is not preloaded\n");
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  // Long enough for logs and buffers to reach their final size, then several more epochs.
  // One line calls work() in both phases, because a new caller takes new memory. Nor does another site have calls
  // before the count: the leader may digest them during it, and take a row for a rank that came last there for the
  // first time.
  for (int i = 0; i <= 4; ++i) {
    if (i == 4) count_allocations(1);
    work(i < 4 ? 100 : 400, i < 4 && rank == i);
  }
  const long count = count_allocations(0);
  printf("rank %d: %ld allocations\n", rank, count);
  MPI_Finalize();
  return argc > 1 ? count > atol(argv[1]) : count != 0;
}

// SPDX-License-Identifier: BSD-3-Clause
// MPI_THREAD_MULTIPLE: four threads per rank scatter and gather on their own temporary communicators. Prints the
// seconds of the work.
#include <stdlib.h>

#include "threads.h"

enum { kThreads = 4, kMost = 4000 };
static int rounds = 20;

static void* work(void* argument) {
  const int me = (int)(long)argument;
  int *all = malloc(sizeof(int) * kMost * (size_t)size), *one = malloc(sizeof(int) * kMost);
  for (int round = 0; round < rounds; ++round) {
    MPI_Comm comm;
    MPI_Comm_dup(comms[me], &comm);
    for (int i = 0; i < 40; ++i) {
      const int root = (i + me) % size, count = 1 + (i * 397 + me * 31) % kMost;
      if (i % 2) {
        for (int k = 0; rank == root && k < count * size; ++k) all[k] = k + i;
        MPI_Scatter(all, count, MPI_INT, one, count, MPI_INT, root, comm);
        for (int k = 0; k < count; ++k) bad[me] |= one[k] != rank * count + k + i;
      } else {
        for (int k = 0; k < count; ++k) one[k] = rank * count + k - i;
        MPI_Gather(one, count, MPI_INT, all, count, MPI_INT, root, comm);
        for (int k = 0; rank == root && k < count * size; ++k) bad[me] |= all[k] != k - i;
      }
      if (i % 10 == 9) MPI_Barrier(comm);
      if (i % 10 == 4) {
        int sum = 0;
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
        bad[me] |= sum != size * (size - 1) / 2;
      }
    }
    MPI_Comm_free(&comm);
  }
  free(all);
  free(one);
  return NULL;
}

int main(int argc, char** argv) {
  int number = kThreads;
  if (argc > 1) rounds = atoi(argv[1]);
  if (argc > 2 && atoi(argv[2]) < kThreads) number = atoi(argv[2]);
  return run_threads(&argc, &argv, kThreads, number, work);
}

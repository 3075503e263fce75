// SPDX-License-Identifier: BSD-3-Clause
// MPI_THREAD_MULTIPLE: four threads per rank scatter and gather on their own temporary communicators. Prints the
// seconds of the work.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kThreads = 4, kMost = 4000 };
static int rank, size, rounds = 20, number = kThreads, bad[kThreads];
static MPI_Comm comms[kThreads];

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
  free(all), free(one);
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 1) rounds = atoi(argv[1]);
  if (argc > 2 && atoi(argv[2]) < kThreads) number = atoi(argv[2]);
  const double begin = MPI_Wtime();
  if (provided == MPI_THREAD_MULTIPLE) {
    pthread_t threads[kThreads];
    for (int i = 0; i < kThreads; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < number; ++i) pthread_create(&threads[i], NULL, work, (void*)(long)i);
    for (int i = 0; i < number; ++i) pthread_join(threads[i], NULL);
    for (int i = 0; i < kThreads; ++i) MPI_Comm_free(&comms[i]);
  }
  int any = 0;
  for (int i = 0; i < kThreads; ++i) any |= bad[i];
  if (rank == 0) fprintf(stderr, "%.3f s\n", MPI_Wtime() - begin);
  printf("rank %d %s\n", rank, any ? "wrong" : "right");
  MPI_Finalize();
  return any;
}

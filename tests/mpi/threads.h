// SPDX-License-Identifier: BSD-3-Clause
// The frame of the programs with one communicator a thread. The program that includes this file brings the work.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { kMostThreads = 4 };
static int rank, size, bad[kMostThreads];
static MPI_Comm comms[kMostThreads];

/// Runs `work` in `number` threads of each rank, if MPI grants MPI_THREAD_MULTIPLE. Its argument is the number of the
/// thread, and of the communicator among `communicators` and of the place in `bad`. Prints the result and finalizes
/// MPI. Returns the program's status.
static int run_threads(int* argc, char*** argv, int communicators, int number, void* (*work)(void*)) {
  int provided;
  MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const double begin = MPI_Wtime();
  if (provided == MPI_THREAD_MULTIPLE) {
    pthread_t threads[kMostThreads];
    for (int i = 0; i < communicators; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < number; ++i) pthread_create(&threads[i], NULL, work, (void*)(long)i);
    for (int i = 0; i < number; ++i) pthread_join(threads[i], NULL);
    for (int i = 0; i < communicators; ++i) MPI_Comm_free(&comms[i]);
  }
  int any = 0;
  for (int i = 0; i < number; ++i) any |= bad[i];
  if (rank == 0) fprintf(stderr, "%.3f s\n", MPI_Wtime() - begin);
  printf("rank %d %s\n", rank, any ? "wrong" : "right");
  MPI_Finalize();
  return any;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 1 is late into each allreduce, because its main thread waits for a thread that it has started.
 * Usage: own_threads CALLS MILLISECONDS WAY. The thread of rank 1 computes, receives a message from a thread of rank 0
 * that sleeps before it sends, or sleeps itself. */
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "work.h"

static int rank;
static double ms;
static const char* way;
static MPI_Comm of_threads;

static void* work(void* unused) {
  int token = 0;
  if (strcmp(way, "computes") == 0) {
    if (rank == 1) compute(ms);
  } else if (strcmp(way, "receives") == 0) {
    if (rank == 0) {
      nap(ms);
      MPI_Send(&token, 1, MPI_INT, 1, 0, of_threads);
    } else if (rank == 1) {
      MPI_Recv(&token, 1, MPI_INT, 0, 0, of_threads, MPI_STATUS_IGNORE);
    }
  } else if (rank == 1) {
    nap(ms);
  }
  return unused;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  ms = atof(argv[2]);
  way = argv[3];
  calibrate();
  int level, sum;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &of_threads);
  if (level != MPI_THREAD_MULTIPLE) MPI_Abort(MPI_COMM_WORLD, 3);
  for (int i = 0; i < atoi(argv[1]); ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) != 0) return 4;
    if (rank == 1) pthread_join(thread, NULL);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank != 1) pthread_join(thread, NULL);
  }
  MPI_Comm_free(&of_threads);
  MPI_Finalize();
  return 0;
}

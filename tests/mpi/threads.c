// SPDX-License-Identifier: BSD-3-Clause
// MPI_THREAD_MULTIPLE: several communicators at once, one thread each, created and freed during the run.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { kThreads = 3 };
static int rank, size, bad[kThreads];
static MPI_Comm comms[kThreads];

static void* work(void* argument) {
  const int me = (int)(long)argument;
  for (int round = 0; round < 4; ++round) {
    MPI_Comm comm;
    MPI_Comm_dup(comms[me], &comm);
    for (int i = 0; i < 60; ++i) {
      double in[200], out[200];
      for (int k = 0; k < 200; ++k) in[k] = rank * (me + 1) + k;
      MPI_Allreduce(in, out, 200, MPI_DOUBLE, MPI_SUM, comm);
      if (out[199] != size * (size - 1) / 2 * (me + 1) + size * 199.0) bad[me] = 1;
    }
    MPI_Comm_free(&comm);
  }
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (provided == MPI_THREAD_MULTIPLE) {
    pthread_t threads[kThreads];
    for (int i = 0; i < kThreads; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, work, (void*)(long)i);
    for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
    for (int i = 0; i < kThreads; ++i) MPI_Comm_free(&comms[i]);
  }
  int any = 0;
  for (int i = 0; i < kThreads; ++i) any |= bad[i];
  printf("rank %d %s\n", rank, any ? "wrong" : "right");
  MPI_Finalize();
  return any;
}

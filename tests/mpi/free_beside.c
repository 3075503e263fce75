// SPDX-License-Identifier: BSD-3-Clause
// MPI_THREAD_MULTIPLE: frees a communicator while another thread waits in a collective for a rank that arrives only
// after the free. Hangs if latecomer holds a lock in the collective.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int rank, size, bad;
static MPI_Comm waits;

static void* collective(void* argument) {
  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, waits);
  bad |= sum != size * (size - 1) / 2;
  return argument;
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int round = 0; round < 3 && provided == MPI_THREAD_MULTIPLE; ++round) {
    MPI_Comm freed;
    int sum = 0, token = round;
    MPI_Comm_dup(MPI_COMM_WORLD, &waits);
    MPI_Comm_dup(MPI_COMM_WORLD, &freed);
    for (int i = 0; i < 20; ++i) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, freed);
    bad |= sum != size * (size - 1) / 2;
    if (rank == 0) {
      pthread_t thread;
      pthread_create(&thread, NULL, collective, NULL);
      usleep(100000);  // long enough to be inside; if it is too short, the test checks nothing
      MPI_Comm_free(&freed);
      for (int r = 1; r < size; ++r) MPI_Send(&token, 1, MPI_INT, r, 0, MPI_COMM_WORLD);
      pthread_join(thread, NULL);
    } else {
      MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Comm_free(&freed);
      collective(NULL);
    }
    MPI_Comm_free(&waits);
  }
  printf("rank %d %s\n", rank, bad ? "wrong" : "right");
  MPI_Finalize();
  return bad;
}

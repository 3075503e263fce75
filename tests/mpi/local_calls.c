/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0 starts sends that copy their data, and prints what it measured: nanoseconds in them, and their number. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { SMALL = 64, LARGE = 1 << 18, TIMES = 1000 };
static volatile int passed; /* set behind the call, so that it is no jump */
static char *out, *in;

static __attribute__((noinline)) double start(int bytes, int to, MPI_Request* request) {
  const double begin = MPI_Wtime();
  MPI_Ibsend(out, bytes, MPI_BYTE, to, 1, MPI_COMM_WORLD, request);
  passed = bytes;
  return MPI_Wtime() - begin;
}

int main(int argc, char** argv) {
  int rank, room = LARGE + SMALL + 2 * MPI_BSEND_OVERHEAD;
  double spent = 0;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  void* space = malloc((size_t)room);
  out = calloc(2, LARGE);
  in = out + LARGE;
  MPI_Buffer_attach(space, room);
  for (int bytes = SMALL; bytes <= LARGE; bytes += LARGE - SMALL)
    for (int i = 0; i < TIMES; ++i) {
      MPI_Barrier(MPI_COMM_WORLD);
      if (rank == 0) {
        spent += start(bytes, 1, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      } else if (rank == 1) {
        MPI_Recv(in, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
    }
  if (rank == 0) printf("%.0f %d\n", 1e9 * spent, 2 * TIMES);
  MPI_Buffer_detach(&space, &room);
  MPI_Finalize();
  return 0;
}

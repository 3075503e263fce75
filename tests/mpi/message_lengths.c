/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks exchange messages of known lengths, and print each one that a function sends or receives: rank, function, the
 * receiver in MPI_COMM_WORLD (-1: the rank receives), bytes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROOM = 1 << 17, TIMES = 7 };
static int rank, ranks, next, before;
static char *out, *in;
static MPI_Comm turned; /* the ranks of MPI_COMM_WORLD in reverse order */
static MPI_Datatype pieces;
static volatile int passed; /* set behind the calls, so that none of them is a jump */

#define FUNCTION static __attribute__((noinline)) void
#define IGNORE MPI_STATUS_IGNORE

static void say(const char* function, int to, int bytes) { printf("%d %s %d %d\n", rank, function, to, bytes); }

FUNCTION sends(int bytes) {
  if (rank % 2) MPI_Recv(in, ROOM, MPI_BYTE, before, 1, MPI_COMM_WORLD, IGNORE);
  MPI_Send(out, bytes, MPI_BYTE, next, 1, MPI_COMM_WORLD);
  if (rank % 2 == 0) MPI_Recv(in, ROOM, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, IGNORE);
  say("sends", next, bytes);
  say("sends", -1, bytes);
}
FUNCTION exchanges(int bytes) {
  MPI_Sendrecv(out, bytes, MPI_CHAR, next, 2, in, ROOM, MPI_CHAR, before, 2, MPI_COMM_WORLD, IGNORE);
  passed = bytes;
  say("exchanges", next, bytes);
  say("exchanges", -1, bytes);
}
/* Ints, on another communicator: its rank r is rank ranks - 1 - r. */
FUNCTION starts(int count) {
  MPI_Request all[2];
  MPI_Irecv(in, ROOM / 4, MPI_INT, ranks - 1 - before, 3, turned, &all[0]);
  MPI_Isend(out, count, MPI_INT, ranks - 1 - next, 3, turned, &all[1]);
  MPI_Waitall(2, all, MPI_STATUSES_IGNORE);
  passed = count;
  say("starts", next, count * (int)sizeof(int));
}
/* Three pairs of doubles with gaps each. */
FUNCTION sends_pieces(int count) {
  MPI_Request one;
  MPI_Irecv(in, 6 * count, MPI_DOUBLE, before, 4, MPI_COMM_WORLD, &one);
  MPI_Ssend(out, count, pieces, next, 4, MPI_COMM_WORLD);
  MPI_Wait(&one, IGNORE);
  passed = count;
  say("sends_pieces", next, count * 6 * (int)sizeof(double));
}
FUNCTION goes_nowhere(int bytes) {
  MPI_Send(out, bytes, MPI_BYTE, MPI_PROC_NULL, 5, MPI_COMM_WORLD);
  MPI_Recv(in, bytes, MPI_BYTE, MPI_PROC_NULL, 5, MPI_COMM_WORLD, IGNORE);
  MPI_Sendrecv(out, bytes, MPI_BYTE, MPI_PROC_NULL, 5, in, bytes, MPI_BYTE, MPI_PROC_NULL, 5, MPI_COMM_WORLD, IGNORE);
  passed = bytes;
}
FUNCTION looks_first(int bytes) {
  MPI_Request one;
  MPI_Isend(out, bytes, MPI_BYTE, next, 6, MPI_COMM_WORLD, &one);
  MPI_Probe(before, 6, MPI_COMM_WORLD, IGNORE);
  MPI_Recv(in, ROOM, MPI_BYTE, before, 6, MPI_COMM_WORLD, IGNORE);
  MPI_Wait(&one, IGNORE);
  passed = bytes;
  say("looks_first", next, bytes);
  say("looks_first", -1, bytes);
}

int main(int argc, char** argv) {
  const int lengths[TIMES] = {0, 1, 3, 4, 1000, 1024, 100000};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  next = (rank + 1) % ranks;
  before = (rank + ranks - 1) % ranks;
  out = calloc(2, ROOM);
  in = out + ROOM;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
  MPI_Type_vector(3, 2, 4, MPI_DOUBLE, &pieces);
  MPI_Type_commit(&pieces);
  for (int i = 0; i < TIMES; ++i) {
    sends(lengths[i]);
    exchanges(lengths[i]);
    starts(lengths[i] / 4);
    sends_pieces(i);
    goes_nowhere(lengths[i]);
    looks_first(lengths[i]);
  }
  MPI_Type_free(&pieces);
  MPI_Comm_free(&turned);
  MPI_Finalize();
  return 0;
}

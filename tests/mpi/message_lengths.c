/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks exchange messages of known lengths, and print each one that a function sends or receives: rank, function, the
 * receiver in MPI_COMM_WORLD (-1: the rank receives), bytes. A collective has no function. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROOM = 1 << 17, TIMES = 7, MOST = 8 };
static int rank, ranks, next, before;
static char *out, *in, *more;
static MPI_Comm turned; /* the ranks of MPI_COMM_WORLD in reverse order */
static MPI_Datatype pieces;
static MPI_Win win;         /* on `turned` */
static volatile int passed; /* set behind the calls, so that none of them is a jump */

#define FUNCTION static __attribute__((noinline)) void
#define IGNORE MPI_STATUS_IGNORE

static void say_of(int from, const char* function, int to, int bytes) {
  printf("%d %s %d %d\n", from, function, to, bytes);
}
static void say(const char* function, int to, int bytes) { say_of(rank, function, to, bytes); }

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
/* A persistent request, on the other communicator. */
FUNCTION starts_again(int bytes) {
  MPI_Request all[2];
  MPI_Recv_init(in, ROOM, MPI_BYTE, ranks - 1 - before, 7, turned, &all[0]);
  MPI_Send_init(out, bytes, MPI_BYTE, ranks - 1 - next, 7, turned, &all[1]);
  for (int i = 0; i < 3; ++i) {
    if (i == 1) MPI_Startall(2, all);
    for (int k = 0; k < 2 && i != 1; ++k) MPI_Start(&all[k]);
    MPI_Waitall(2, all, MPI_STATUSES_IGNORE);
    say("starts_again", next, bytes);
  }
  MPI_Request_free(&all[0]);
  MPI_Request_free(&all[1]);
}
/* One-sided: a put and a get to the next rank, and an accumulate that brings the old data back. */
FUNCTION accesses(int bytes) {
  const int target = ranks - 1 - next, count = bytes / 4;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
  MPI_Put(out, bytes, MPI_BYTE, target, 0, bytes, MPI_BYTE, win);
  MPI_Get(in, bytes, MPI_BYTE, target, ROOM, bytes, MPI_BYTE, win);
  MPI_Get_accumulate(out, count, MPI_INT, more, count, MPI_INT, target, 2 * ROOM, count, MPI_INT, MPI_SUM, win);
  MPI_Accumulate(out, count, MPI_INT, target, 3 * ROOM, count, MPI_INT, MPI_SUM, win);
  MPI_Win_unlock(target, win);
  MPI_Put(out, bytes, MPI_BYTE, MPI_PROC_NULL, 0, bytes, MPI_BYTE, win);
  say("accesses", next, bytes);
  say_of(next, "accesses", rank, bytes);
  say("accesses", next, 4 * count);
  say_of(next, "accesses", rank, 4 * count);
  say("accesses", next, 4 * count);
}
/* Collectives, which have no lengths at a site: to the next rank, and to the one before. */
FUNCTION exchanges_all(int bytes) {
  int counts[MOST] = {0}, from[MOST] = {0}, places[MOST] = {0};
  MPI_Datatype types[MOST];
  for (int i = 0; i < ranks; ++i) types[i] = i == next ? MPI_INT : MPI_BYTE;
  counts[rank] = from[rank] = 1;
  places[rank] = ROOM - 1; /* of this rank's own byte */
  counts[next] = from[before] = bytes;
  MPI_Alltoallv(out, counts, places, MPI_BYTE, in, from, places, MPI_BYTE, MPI_COMM_WORLD);
  say("-", next, bytes);
  counts[next] = bytes / 4;
  from[before] = bytes / 4 * 4;
  MPI_Alltoallw(out, counts, places, types, in, from, places, types, MPI_COMM_WORLD);
  say("-", next, bytes / 4 * 4);
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
  out = calloc(3, ROOM);
  in = out + ROOM;
  more = in + ROOM;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
  MPI_Win_create(calloc(4, ROOM), 4 * ROOM, 1, MPI_INFO_NULL, turned, &win);
  MPI_Type_vector(3, 2, 4, MPI_DOUBLE, &pieces);
  MPI_Type_commit(&pieces);
  for (int i = 0; i < TIMES; ++i) {
    sends(lengths[i]);
    exchanges(lengths[i]);
    starts(lengths[i] / 4);
    sends_pieces(i);
    goes_nowhere(lengths[i]);
    looks_first(lengths[i]);
    starts_again(lengths[i]);
    accesses(lengths[i]);
    exchanges_all(lengths[i]);
  }
  MPI_Type_free(&pieces);
  MPI_Win_free(&win);
  MPI_Comm_free(&turned);
  MPI_Finalize();
  return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
   Calls that follow each other at once, so that most of them rest within a budget.
   Usage: budget every ROUNDS: all collectives, on communicators of several sizes, with sizes that change.
   Usage: budget rooted ROUNDS: only broadcasts and gathers, on communicators of several sizes.
   Usage: budget late FAST SLOW MS: FAST allreduces at once, then SLOW allreduces to which rank 1 comes MS late.
   Exit status 1: a result is wrong. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kMost = 64 };
static int wrong = 0;

static void expect(long got, long wanted) { wrong |= got != wanted; }

static void call_every(MPI_Comm comm, int count, int round) {
  static long in[kMost * kMost], out[kMost * kMost];
  static int counts[kMost], places[kMost], pairs[kMost];
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int root = round % size;
  const long all = (long)size * (size + 1) / 2;
  for (int i = 0; i < size; ++i) {
    counts[i] = 1 + (i + round) % 3;
    places[i] = 3 * i;
    pairs[i] = (i + rank + round) % 3; /* what two ranks send each other */
  }
  for (int i = 0; i < kMost * kMost; ++i) in[i] = rank + 1;
  MPI_Allreduce(in, out, count, MPI_LONG, MPI_SUM, comm);
  expect(out[0], all);
  MPI_Reduce(in, out, count, MPI_LONG, MPI_MAX, root, comm);
  if (rank == root) expect(out[count - 1], size);
  MPI_Bcast(memcpy(out, in, sizeof(long) * (size_t)count), count, MPI_LONG, root, comm);
  expect(out[0], root + 1);
  MPI_Allgather(in, count, MPI_LONG, out, count, MPI_LONG, comm);
  expect(out[count * (size - 1)], size);
  MPI_Allgatherv(in, counts[rank], MPI_LONG, out, counts, places, MPI_LONG, comm);
  expect(out[places[size - 1]], size);
  MPI_Alltoall(in, count, MPI_LONG, out, count, MPI_LONG, comm);
  expect(out[0], 1);
  MPI_Alltoallv(in, pairs, places, MPI_LONG, out, pairs, places, MPI_LONG, comm);
  if (pairs[0] > 0) expect(out[0], 1);
  MPI_Gather(in, count, MPI_LONG, out, count, MPI_LONG, root, comm);
  if (rank == root) expect(out[count * (size - 1)], size);
  MPI_Gatherv(in, counts[rank], MPI_LONG, out, counts, places, MPI_LONG, root, comm);
  if (rank == root) expect(out[places[size - 1]], size);
  MPI_Scatter(in, count, MPI_LONG, out, count, MPI_LONG, root, comm);
  expect(out[0], root + 1);
  MPI_Scatterv(in, counts, places, MPI_LONG, out, counts[rank], MPI_LONG, root, comm);
  expect(out[0], root + 1);
  MPI_Reduce_scatter_block(in, out, count, MPI_LONG, MPI_SUM, comm);
  expect(out[0], all);
  MPI_Scan(in, out, count, MPI_LONG, MPI_SUM, comm);
  expect(out[0], (long)(rank + 1) * (rank + 2) / 2);
  MPI_Barrier(comm);
  /* Of another type, in place, and by a non-blocking call. */
  int one = 1;
  MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_SUM, comm);
  expect(one, size);
  MPI_Request request;
  MPI_Iallreduce(in, out, count, MPI_LONG, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(out[0], all);
}

static void call_rooted(MPI_Comm comm, int round) {
  static int out[kMost];
  int rank, size, number = round;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Bcast(&number, 1, MPI_INT, 0, comm);
  MPI_Gather(&rank, 1, MPI_INT, out, 1, MPI_INT, size - 1, comm);
  expect(number, round);
  if (rank == size - 1) expect(out[size - 1], rank);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* mode = argc > 1 ? argv[1] : "every";
  const long rounds = argc > 2 ? atol(argv[2]) : 2000;
  MPI_Comm half, copy;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  if (strcmp(mode, "every") == 0) {
    for (long i = 0; i < rounds; ++i) {
      call_every(MPI_COMM_WORLD, 1 + (int)(i / 100 % 4), (int)i);
      if (i % 3 == 0) call_every(half, 2, (int)i);
      if (i % 5 == 0) call_every(copy, 1 + (int)(i % 3), (int)i);
      if (i % 1000 == 999) { /* another one may get the same handle */
        MPI_Comm_free(&copy);
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
      }
    }
  } else if (strcmp(mode, "rooted") == 0) {
    for (long i = 0; i < rounds; ++i) {
      call_rooted(MPI_COMM_WORLD, (int)i);
      call_rooted(half, (int)i);
    }
  } else {
    const long slow = argc > 3 ? atol(argv[3]) : 300;
    const long ms = argc > 4 ? atol(argv[4]) : 2;
    long sum = 0;
    for (long i = 0; i < rounds; ++i) {
      MPI_Allreduce(&i, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
      expect(sum, i * size);
    }
    for (long i = 0; i < slow; ++i) {
      if (rank == 1) nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
      MPI_Allreduce(&i, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
      expect(sum, i * size);
    }
  }
  MPI_Comm_free(&half);
  MPI_Comm_free(&copy);
  MPI_Finalize();
  if (wrong) printf("rank %d: wrong results\n", rank);
  return wrong;
}

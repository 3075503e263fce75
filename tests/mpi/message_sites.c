/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0 waits at known lines for known ranks. It prints what it measured by itself: function, call of MPI, awaited
 * rank, nanoseconds, calls. Each wait has a function of its own. Ranks 1 and 2 are late in turn, MS milliseconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "work.h"

enum { ROUNDS = 12, MS = 8, LARGE = 1 << 20, REQUESTS = 40 };
#define FUNCTION static __attribute__((noinline)) void
#define ANYHOW MPI_STATUS_IGNORE

static int rank;
static volatile int passed; /* set behind the calls, so that none of them is a jump */
static char *data, *more;
static MPI_Request requests[REQUESTS];
static MPI_Comm equal;
static MPI_Comm turned;         /* its ranks are those of MPI_COMM_WORLD in reverse order */
static MPI_Comm edges[3], ring; /* a graph with one edge from that rank to rank 0; all ranks in a ring */
static MPI_Win win;
static MPI_Datatype byte;

/* On rank 0 they wait for the rank `late`, on another rank for nobody. */
FUNCTION receives(int late) {
  if (rank == 0) MPI_Recv(data, 8, byte, late, 1, MPI_COMM_WORLD, ANYHOW);
  else if (rank == late) MPI_Send(data, 8, byte, 0, 1, MPI_COMM_WORLD);
  passed = late;
}
FUNCTION receives_from_any(int late) {
  if (rank == 0) MPI_Recv(data, 8, byte, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, ANYHOW);
  else if (rank == late) MPI_Send(data, 8, byte, 0, 2, MPI_COMM_WORLD);
  passed = late;
}
FUNCTION receives_on_another_communicator(int late) {
  if (rank == 0) MPI_Recv(data, 8, byte, 2 - late, 3, turned, ANYHOW);
  else if (rank == late) MPI_Send(data, 8, byte, 2, 3, turned);
  passed = late;
}
FUNCTION sends(int late) {
  if (rank == 0) MPI_Ssend(data, 8, byte, late, 4, MPI_COMM_WORLD);
  else if (rank == late) MPI_Recv(data, 8, byte, 0, 4, MPI_COMM_WORLD, ANYHOW);
  passed = late;
}
FUNCTION exchanges(int late) {
  if (rank == 0) MPI_Sendrecv(data, 8, byte, late, 5, more, 8, byte, late, 5, MPI_COMM_WORLD, ANYHOW);
  else if (rank == late) MPI_Sendrecv(data, 8, byte, 0, 5, more, 8, byte, 0, 5, MPI_COMM_WORLD, ANYHOW);
  passed = late;
}
FUNCTION probes(int late) {
  if (rank == 0) MPI_Probe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, ANYHOW);
  else if (rank == late) MPI_Send(data, 8, byte, 0, 6, MPI_COMM_WORLD);
  passed = late;
}
FUNCTION takes_probed(int late) {
  if (rank == 0) MPI_Recv(data, 8, byte, late, 6, MPI_COMM_WORLD, ANYHOW);
  passed = late;
}
/* Both ranks send, and the late one comes last. Which request is last in order changes with it. */
FUNCTION starts_all(int late) {
  for (int i = 0; i < REQUESTS && rank == 0; ++i)
    MPI_Irecv(data + 8 * i, 8, byte, 1 + i % 2, 7 + i, MPI_COMM_WORLD, &requests[i]);
  passed = late;
}
FUNCTION waits_for_all(int late) {
  for (int i = 0; i < REQUESTS && rank != 0; ++i)
    if (1 + i % 2 == rank) MPI_Send(data, 8, byte, 0, 7 + i, MPI_COMM_WORLD);
  if (rank == 0) MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE);
  passed = late;
}
FUNCTION starts_one(int late) {
  if (rank == 0) MPI_Irecv(data, 8, byte, late, 60, MPI_COMM_WORLD, requests);
  passed = late;
}
FUNCTION waits_for_one(int late) {
  if (rank == 0) MPI_Wait(requests, ANYHOW);
  else if (rank == late) MPI_Send(data, 8, byte, 0, 60, MPI_COMM_WORLD);
  passed = late;
}
FUNCTION starts_from_any(int late) {
  if (rank == 0) MPI_Irecv(data, 8, byte, MPI_ANY_SOURCE, 63, MPI_COMM_WORLD, requests);
  passed = late;
}
FUNCTION waits_for_one_from_any(int late) {
  if (rank == 0) MPI_Wait(requests, ANYHOW);
  else if (rank == late) MPI_Send(data, 8, byte, 0, 63, MPI_COMM_WORLD);
  passed = late;
}
/* On a communicator with the ranks of MPI_COMM_WORLD. The late rank's message is the second one. */
FUNCTION starts_two_from_any(int late) {
  for (int i = 0; i < 2 && rank == 0; ++i) MPI_Irecv(data, 8, byte, MPI_ANY_SOURCE, 64, equal, &requests[i]);
  passed = late;
}
FUNCTION waits_for_two_from_any(int late) {
  if (rank == 0) MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  else MPI_Send(data, 8, byte, 0, 64, equal);
  passed = late;
}
FUNCTION starts_any(int late) {
  for (int r = 1; r < 3 && rank == 0; ++r) MPI_Irecv(data, 8, byte, r, 61, MPI_COMM_WORLD, &requests[r - 1]);
  passed = late;
}
/* The rank that is not late sends after it. */
FUNCTION waits_for_any(int late) {
  int index;
  if (rank == 0) MPI_Waitany(2, requests, &index, ANYHOW);
  else if (rank == late) {
    MPI_Send(data, 8, byte, 0, 61, MPI_COMM_WORLD);
    MPI_Send(data, 8, byte, 3 - rank, 62, MPI_COMM_WORLD);
  } else {
    MPI_Recv(data, 8, byte, late, 62, MPI_COMM_WORLD, ANYHOW);
    nap(MS / 2);
    MPI_Send(data, 8, byte, 0, 61, MPI_COMM_WORLD);
  }
  passed = late;
}
FUNCTION takes_other(int late) {
  if (rank == 0) MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  passed = late;
}
FUNCTION locks(int late) { /* the late rank holds the lock of its window */
  if (rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, late, 0, win);
  else if (rank == late) MPI_Win_unlock(rank, win);
  passed = late;
}
/* In MPICH, the lock waits for its first access, so the two lines are one wait. */
FUNCTION unlocks(int late) {
  if (rank == 0) MPI_Put(more, 8, byte, late, 0, 8, byte, win);
  if (rank == 0) MPI_Win_unlock(late, win);
  passed = late;
}

/* Collectives of neighbours: rank 0 receives from the late rank, or from both. */
FUNCTION hears_neighbour(int late) {
  MPI_Neighbor_allgather(data, 8, byte, more, 8, byte, edges[late]);
  passed = late;
}
FUNCTION hears_neighbours(int late) {
  MPI_Neighbor_alltoall(data, 8, byte, more, 8, byte, ring);
  passed = late;
}
FUNCTION starts_some_from_any(int late) {
  if (rank == 0) MPI_Irecv(data, 8, byte, MPI_ANY_SOURCE, 65, MPI_COMM_WORLD, requests);
  passed = late;
}
FUNCTION waits_for_some_from_any(int late) {
  int done, index;
  if (rank == 0) MPI_Waitsome(1, requests, &done, &index, MPI_STATUSES_IGNORE);
  else if (rank == late) MPI_Send(data, 8, byte, 0, 65, MPI_COMM_WORLD);
  passed = late;
}

/* `before` runs on all ranks, then ranks 1 and 2 are late in turn, then `waits`, whose time counts, and `after`. */
static void scenario(const char* name, const char* call, void (*before)(int), void (*waits)(int), void (*after)(int)) {
  double spent[3] = {0};
  for (int i = 0; i < ROUNDS; ++i) {
    const int late = i % 3 == 0 ? 2 : 1;
    if (before) before(late);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == late) nap(MS);
    const double begin = seconds(CLOCK_MONOTONIC);
    waits(late);
    spent[late] += seconds(CLOCK_MONOTONIC) - begin;
    if (after) after(late);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (rank == 0)
    for (int r = 1; r < 3; ++r) printf("%s %s %d %.0f %d\n", name, call, r, 1e9 * spent[r], ROUNDS);
}
static void hold_lock(int late) {
  if (rank == late) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    MPI_Put(more, 8, byte, rank, 0, 8, byte, win);
    MPI_Win_flush(rank, win);
  }
}
static void locks_and_unlocks(int late) {
  locks(late);
  unlocks(late);
}

/* Rank 1 sends only after rank 0 has heard that the message of rank 2 was too long. */
static int hear_of_failure(void) {
  MPI_Request pair[2];
  MPI_Status statuses[2];
  int large[8] = {0}, small[8], pending = 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == 0) {
    MPI_Irecv(large, 8, MPI_INT, 1, 1, MPI_COMM_WORLD, &pair[0]);
    MPI_Irecv(small, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, &pair[1]);
    nap(20);
    pending = MPI_Waitall(2, pair, statuses) == MPI_ERR_IN_STATUS && statuses[0].MPI_ERROR == MPI_ERR_PENDING;
    MPI_Send(large, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
    MPI_Wait(&pair[0], ANYHOW);
  }
  if (rank == 1) MPI_Recv(small, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, ANYHOW);
  if (rank > 0) MPI_Send(large, 8, MPI_INT, 0, 1, MPI_COMM_WORLD);
  if (rank == 0) printf("pending %d\n", pending);
  MPI_Finalize();
  return 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 1) return hear_of_failure();
  byte = MPI_BYTE;
  data = calloc(2, LARGE);
  more = data + LARGE;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &equal);
  MPI_Win_create(data, LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  scenario("receives", "MPI_Recv", NULL, receives, NULL);
  scenario("receives_from_any", "MPI_Recv", NULL, receives_from_any, NULL);
  scenario("receives_on_another_communicator", "MPI_Recv", NULL, receives_on_another_communicator, NULL);
  scenario("sends", "MPI_Ssend", NULL, sends, NULL);
  scenario("exchanges", "MPI_Sendrecv", NULL, exchanges, NULL);
  scenario("probes", "MPI_Probe", NULL, probes, takes_probed);
  scenario("waits_for_all", "MPI_Waitall", starts_all, waits_for_all, NULL);
  scenario("waits_for_one", "MPI_Wait", starts_one, waits_for_one, NULL);
  scenario("waits_for_one_from_any", "MPI_Wait", starts_from_any, waits_for_one_from_any, NULL);
  scenario("waits_for_two_from_any", "MPI_Waitall", starts_two_from_any, waits_for_two_from_any, NULL);
  scenario("waits_for_any", "MPI_Waitany", starts_any, waits_for_any, takes_other);
  scenario("waits_for_some_from_any", "MPI_Waitsome", starts_some_from_any, waits_for_some_from_any, NULL);
  for (int r = 1; r < 3; ++r) {
    const int zero = 0, weight = 1;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank == 0, &r, &weight, rank == r, &zero, &weight, MPI_INFO_NULL, 0,
                                   &edges[r]);
  }
  MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){3}, (int[]){1}, 0, &ring);
  scenario("hears_neighbour", "MPI_Neighbor_allgather", NULL, hears_neighbour, NULL);
  scenario("hears_neighbours", "MPI_Neighbor_alltoall", NULL, hears_neighbours, NULL);
  scenario("locks,unlocks", "MPI_Win_lock,MPI_Win_unlock,MPI_Put", hold_lock, locks_and_unlocks, NULL);
  MPI_Win_free(&win);
  MPI_Comm_free(&ring);
  MPI_Comm_free(&edges[1]);
  MPI_Comm_free(&edges[2]);
  MPI_Comm_free(&equal);
  MPI_Comm_free(&turned);
  MPI_Finalize();
  return 0;
}

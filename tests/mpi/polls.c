/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that asks again and again whether a message of rank 1 has come, which is late.
 *
 * Usage: polls FUNCTION BETWEEN MICROSECONDS ITERATIONS MILLISECONDS
 *
 * FUNCTION is one of test, testall, testany, testsome, status, iprobe, improbe, win_test, parrived. BETWEEN two polls
 * is spin, yield, sleep or work, of so many microseconds. Work takes longer by the time of a poll. Rank 0 polls, then
 * all ranks meet in an allreduce.
 *
 * Usage: polls master ITERATIONS MILLISECONDS: rank 0 works, then sends to each rank, which polls by iprobe and works a
 * tenth of that time.
 *
 * Usage: polls never MILLISECONDS: rank 0 polls for a message that never comes. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "work.h"

static const char* between;
static double us, shortest_poll = 1e9; /* microseconds */
static void pause_between(void) {
  if (strcmp(between, "sleep") == 0) nap(us / 1e3);
  if (strcmp(between, "work") == 0) compute((us + shortest_poll) / 1e3);
  if (strcmp(between, "yield") == 0) sched_yield();
}

static int message;
static MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
static MPI_Win win = MPI_WIN_NULL;
static MPI_Group other = MPI_GROUP_NULL;

static void post(const char* function) {
  if (strncmp(function, "test", 4) == 0 || strcmp(function, "status") == 0)
    MPI_Irecv(&message, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &requests[0]);
  if (win != MPI_WIN_NULL) MPI_Win_post(other, 0, win);
#if MPI_VERSION >= 4
  if (strcmp(function, "parrived") == 0) MPI_Start(&requests[0]);
#endif
}

static int ask(const char* function, MPI_Message* matched) {
  int found = 0, index;
  int indices[2];
  MPI_Status statuses[2];
  if (strcmp(function, "test") == 0) MPI_Test(&requests[0], &found, MPI_STATUS_IGNORE);
  if (strcmp(function, "testall") == 0) MPI_Testall(2, requests, &found, statuses);
  if (strcmp(function, "testany") == 0) MPI_Testany(2, requests, &index, &found, MPI_STATUS_IGNORE);
  if (strcmp(function, "testsome") == 0) MPI_Testsome(2, requests, &found, indices, statuses);
  if (strcmp(function, "status") == 0) MPI_Request_get_status(requests[0], &found, MPI_STATUS_IGNORE);
  if (strcmp(function, "iprobe") == 0) MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  if (strcmp(function, "improbe") == 0) MPI_Improbe(1, 0, MPI_COMM_WORLD, &found, matched, MPI_STATUS_IGNORE);
  if (strcmp(function, "win_test") == 0) MPI_Win_test(win, &found);
#if MPI_VERSION >= 4
  if (strcmp(function, "parrived") == 0) MPI_Parrived(requests[0], 0, &found);
#endif
  return found;
}

static void receive(const char* function, MPI_Message* matched) {
  if (strcmp(function, "status") == 0 || strcmp(function, "parrived") == 0) MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  if (strcmp(function, "iprobe") == 0) MPI_Recv(&message, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (strcmp(function, "improbe") == 0) MPI_Mrecv(&message, 1, MPI_INT, matched, MPI_STATUS_IGNORE);
}

static void answer(const char* function) {
  (void)function;
  if (win != MPI_WIN_NULL) {
    MPI_Win_start(other, 0, win);
    MPI_Win_complete(win);
#if MPI_VERSION >= 4
  } else if (strcmp(function, "parrived") == 0) {
    MPI_Start(&requests[0]);
    MPI_Pready(0, requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
#endif
  } else {
    MPI_Send(&message, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  }
}

static int master(int rank, int size, int iterations, double ms) {
  for (int i = 0; i < iterations; ++i) {
    if (rank == 0) {
      compute(ms);
      for (int to = 1; to < size; ++to) MPI_Send(&i, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
    } else {
      for (int found = 0; !found;) MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
      MPI_Recv(&message, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      compute(0.1 * ms);
    }
  }
  MPI_Finalize();
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* function = argv[1];
  calibrate();
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(function, "master") == 0) return master(rank, size, atoi(argv[2]), atof(argv[3]));
  if (strcmp(function, "never") == 0) {
    int found = 0;
    for (const double until = seconds(CLOCK_MONOTONIC) + atof(argv[2]) / 1e3;
         seconds(CLOCK_MONOTONIC) < until && !found;)
      if (rank == 0) MPI_Iprobe(1, 0, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
  }
  between = argv[2];
  us = atof(argv[3]);
  const int iterations = atoi(argv[4]);
  const double ms = atof(argv[5]);
  if (strcmp(function, "win_test") == 0) {
    MPI_Group world;
    const int peer = 1 - rank;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Win_create(&message, sizeof message, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (rank < 2) MPI_Group_incl(world, 1, &peer, &other);
    MPI_Group_free(&world);
  }
#if MPI_VERSION >= 4
  if (strcmp(function, "parrived") == 0) {
    if (rank == 0) MPI_Precv_init(&message, 1, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    if (rank == 1) MPI_Psend_init(&message, 1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  }
#else
  if (strcmp(function, "parrived") == 0) return 77; /* the launcher ends the job */
#endif
  for (int i = 0; i < iterations; ++i) {
    MPI_Message matched;
    int one = 1, sum;
    if (rank == 0) {
      post(function);
      for (;;) {
        const double begin = seconds(CLOCK_MONOTONIC);
        if (ask(function, &matched)) break;
        const double took = 1e6 * (seconds(CLOCK_MONOTONIC) - begin);
        if (took < shortest_poll) shortest_poll = took;
        pause_between();
      }
      receive(function, &matched);
    }
    if (rank == 1) {
      nap(ms);
      answer(function);
    }
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != size) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (requests[0] != MPI_REQUEST_NULL) MPI_Request_free(&requests[0]);
  if (other != MPI_GROUP_NULL) MPI_Group_free(&other);
  if (win != MPI_WIN_NULL) MPI_Win_free(&win);
  MPI_Finalize();
  return 0;
}

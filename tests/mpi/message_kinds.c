/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0 waits for rank 1, which is late by MS milliseconds. Both note the times of their calls. At the end, rank 0
 * prints what they show: function, call of MPI, nanoseconds until the send began, until the receive was posted, and
 * after that. Last comes the number of messages that can be matched. Each wait has a function of its own. With an
 * argument, rank 0 cancels a receive before each message. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "work.h"

enum { ROUNDS = 12, MS = 6, LARGE = 1 << 22, MOST = 24 };
#define FUNCTION static __attribute__((noinline)) void
#define ANYHOW MPI_STATUS_IGNORE

struct span {
  double begin, end;
};
static struct span spans[MOST][ROUNDS], theirs[MOST][ROUNDS];
static struct span* span; /* of the call */
static int rank;
static volatile int passed; /* set behind the calls, so that none of them is a jump */
static char *data, *more;
static MPI_Comm turned, twice; /* ranks in reverse order; made of it */
static MPI_Request request, pair[2], persistent = MPI_REQUEST_NULL, sender = MPI_REQUEST_NULL;

static double time_now(void) { return seconds(CLOCK_MONOTONIC); }
#define TIMED(call)           \
  do {                        \
    span->begin = time_now(); \
    call;                     \
    span->end = time_now();   \
  } while (0)
#define RECEIVE(bytes, from, tag, comm) TIMED(MPI_Recv(data, bytes, MPI_BYTE, from, tag, comm, ANYHOW))
#define SEND(bytes, to, tag, comm) TIMED(MPI_Send(data, bytes, MPI_BYTE, to, tag, comm))

FUNCTION receives(void) {
  if (rank == 0) RECEIVE(8, 1, 1, MPI_COMM_WORLD);
  else SEND(8, 0, 1, MPI_COMM_WORLD);
  passed = rank;
}
FUNCTION sends_much(void) {
  if (rank == 0) SEND(LARGE, 1, 2, MPI_COMM_WORLD);
  else RECEIVE(LARGE, 0, 2, MPI_COMM_WORLD);
  passed = rank;
}
FUNCTION sends_little(void) {
  if (rank == 0) SEND(8, 1, 2, MPI_COMM_WORLD);
  else RECEIVE(8, 0, 2, MPI_COMM_WORLD);
  passed = rank;
}
FUNCTION sends_synchronously(void) {
  if (rank == 0) TIMED(MPI_Ssend(data, 8, MPI_BYTE, 1, 3, MPI_COMM_WORLD));
  else RECEIVE(LARGE, 0, 3, MPI_COMM_WORLD);
  passed = rank;
}
FUNCTION receives_any(void) {
  if (rank == 0) RECEIVE(8, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD);
  else SEND(8, 0, 4, MPI_COMM_WORLD);
  passed = rank;
}
/* The first message of rank 1 has another tag, and is there when rank 0 begins to wait. */
FUNCTION sends_ahead(void) {
  if (rank == 1) MPI_Send(data, 8, MPI_BYTE, 0, 5, MPI_COMM_WORLD);
  passed = rank;
}
FUNCTION receives_second(void) {
  if (rank == 0) RECEIVE(8, 1, 6, MPI_COMM_WORLD);
  else SEND(8, 0, 6, MPI_COMM_WORLD);
  passed = rank;
}
FUNCTION takes_first(void) {
  if (rank == 0) MPI_Recv(data, 8, MPI_BYTE, 1, 5, MPI_COMM_WORLD, ANYHOW);
  passed = rank;
}
FUNCTION receives_on_another_communicator(void) {
  if (rank == 0) RECEIVE(8, 0, 7, twice);
  else SEND(8, 1, 7, twice);
  passed = rank;
}
FUNCTION starts(void) {
  if (rank == 0) MPI_Irecv(data, 8, MPI_BYTE, 1, 8, MPI_COMM_WORLD, &request);
  passed = rank;
}
FUNCTION waits(void) {
  if (rank == 0) TIMED(MPI_Wait(&request, ANYHOW));
  else SEND(8, 0, 8, MPI_COMM_WORLD);
  passed = rank;
}
FUNCTION starts_two(void) {
  for (int i = 0; i < 2 && rank == 0; ++i) MPI_Irecv(data + i, 1, MPI_BYTE, 1, 9 + i, MPI_COMM_WORLD, &pair[i]);
  if (rank == 1) MPI_Send(data, 1, MPI_BYTE, 0, 10, MPI_COMM_WORLD);
  passed = rank;
}
FUNCTION waits_for_two(void) {
  if (rank == 0) TIMED(MPI_Waitall(2, pair, MPI_STATUSES_IGNORE));
  else SEND(1, 0, 9, MPI_COMM_WORLD);
  passed = rank;
}
FUNCTION exchanges(void) {
  TIMED(MPI_Sendrecv(data, 8, MPI_BYTE, 1 - rank, 11, more, 8, MPI_BYTE, 1 - rank, 11, MPI_COMM_WORLD, ANYHOW));
  passed = rank;
}
FUNCTION starts_polled(void) {
  if (rank == 0) MPI_Irecv(data, 8, MPI_BYTE, 1, 12, MPI_COMM_WORLD, &request);
  passed = rank;
}
FUNCTION polls(void) {
  int found = 0;
  if (rank == 0) TIMED(while (!found) MPI_Test(&request, &found, ANYHOW));
  else SEND(8, 0, 12, MPI_COMM_WORLD);
  passed = found;
}
FUNCTION probes(void) {
  if (rank == 0) TIMED(MPI_Probe(1, 13, MPI_COMM_WORLD, ANYHOW));
  else SEND(8, 0, 13, MPI_COMM_WORLD);
  passed = rank;
}
FUNCTION takes_probed(void) {
  if (rank == 0) MPI_Recv(data, 8, MPI_BYTE, 1, 13, MPI_COMM_WORLD, ANYHOW);
  passed = rank;
}
FUNCTION polls_for_any(void) {
  int found = 0;
  if (rank == 0) TIMED(while (!found) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, ANYHOW));
  else SEND(8, 0, 14, MPI_COMM_WORLD);
  passed = found;
}
FUNCTION takes_polled(void) {
  if (rank == 0) MPI_Recv(data, 8, MPI_BYTE, 1, 14, MPI_COMM_WORLD, ANYHOW);
  passed = rank;
}
FUNCTION starts_persistent(void) {
  if (rank == 1) return;
  if (persistent == MPI_REQUEST_NULL) MPI_Recv_init(data, 8, MPI_BYTE, 1, 23, MPI_COMM_WORLD, &persistent);
  MPI_Start(&persistent);
  passed = rank;
}
FUNCTION waits_for_persistent(void) {
  if (rank == 0) TIMED(MPI_Wait(&persistent, ANYHOW));
  else SEND(8, 0, 23, MPI_COMM_WORLD);
  passed = rank;
}
FUNCTION receives_with_persistent(void) {
  if (rank == 0) RECEIVE(8, 1, 23, MPI_COMM_WORLD);
  else SEND(8, 0, 23, MPI_COMM_WORLD);
  passed = rank;
}
/* The sender is persistent, and rank 0 is the sender. */
FUNCTION makes_sender(void) {
  if (sender == MPI_REQUEST_NULL && rank == 0) MPI_Ssend_init(data, 8, MPI_BYTE, 0, 24, twice, &sender);
  if (rank == 0) MPI_Start(&sender);
  passed = rank;
}
FUNCTION waits_for_receiver(void) {
  if (rank == 0) TIMED(MPI_Wait(&sender, ANYHOW));
  else RECEIVE(8, 1, 24, twice);
  passed = rank;
}
/* What cannot be matched: the order of the messages is not known. */
FUNCTION starts_any(void) {
  if (rank == 0) MPI_Irecv(data, 8, MPI_BYTE, MPI_ANY_SOURCE, 20, MPI_COMM_WORLD, &request);
  passed = rank;
}
FUNCTION waits_for_any(void) {
  if (rank == 0) TIMED(MPI_Wait(&request, ANYHOW));
  else SEND(8, 0, 20, MPI_COMM_WORLD);
  passed = rank;
}
FUNCTION receives_what_was_probed(void) {
  MPI_Message message;
  if (rank == 0) {
    MPI_Mprobe(1, 21, MPI_COMM_WORLD, &message, ANYHOW);
    MPI_Mrecv(data, 8, MPI_BYTE, &message, ANYHOW);
    RECEIVE(8, 1, 21, MPI_COMM_WORLD);
  } else {
    MPI_Send(data, 8, MPI_BYTE, 0, 21, MPI_COMM_WORLD);
    SEND(8, 0, 21, MPI_COMM_WORLD);
  }
  passed = rank;
}
FUNCTION cancels(void) {
  if (rank == 0) {
    MPI_Irecv(data, 8, MPI_BYTE, 1, 22, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, ANYHOW);
  }
  passed = rank;
}
FUNCTION receives_after_cancel(void) {
  if (rank == 0) RECEIVE(8, 1, 22, MPI_COMM_WORLD);
  else SEND(8, 0, 22, MPI_COMM_WORLD);
  passed = rank;
}

static const struct scenario {
  const char *name, *call;
  void (*before)(void), (*waits)(void), (*after)(void);
  int sends, matched;
} scenarios[] = {{"receives", "MPI_Recv", NULL, receives, NULL, 0, 1},
                 {"sends_much", "MPI_Send", NULL, sends_much, NULL, 1, 1},
                 {"sends_little", "MPI_Send", NULL, sends_little, NULL, 1, 1},
                 {"sends_synchronously", "MPI_Ssend", NULL, sends_synchronously, NULL, 1, 1},
                 {"receives_any", "MPI_Recv", NULL, receives_any, NULL, 0, 1},
                 {"receives_second", "MPI_Recv", sends_ahead, receives_second, takes_first, 0, 1},
                 {"receives_on_another_communicator", "MPI_Recv", NULL, receives_on_another_communicator, NULL, 0, 1},
                 {"waits", "MPI_Wait", starts, waits, NULL, 0, 1},
                 {"waits_for_two", "MPI_Waitall", starts_two, waits_for_two, NULL, 0, 1},
                 {"exchanges", "MPI_Sendrecv", NULL, exchanges, NULL, 0, 1},
                 {"polls", "MPI_Test", starts_polled, polls, NULL, 0, 1},
                 {"probes", "MPI_Probe", NULL, probes, takes_probed, 0, 1},
                 {"polls_for_any", "MPI_Iprobe", NULL, polls_for_any, takes_polled, 0, 1},
                 {"waits_for_persistent", "MPI_Wait", starts_persistent, waits_for_persistent, NULL, 0, 1},
                 {"receives_with_persistent", "MPI_Recv", NULL, receives_with_persistent, NULL, 0, 1},
                 {"waits_for_receiver", "MPI_Wait", makes_sender, waits_for_receiver, NULL, 1, 1},
                 {"waits_for_any", "MPI_Wait", starts_any, waits_for_any, NULL, 0, 0},
                 {"receives_what_was_probed", "MPI_Recv", NULL, receives_what_was_probed, NULL, 0, 0},
                 {"receives_after_cancel", "MPI_Recv", cancels, receives_after_cancel, NULL, 0, 0}};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

static double most(double a, double b) { return a > b ? a : b; }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  data = calloc(2, LARGE);
  more = data + LARGE;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
  MPI_Comm_dup(turned, &twice);
  const int first = argc > 1 ? SCENARIOS - 1 : 0, end = argc > 1 ? SCENARIOS : SCENARIOS - 1;
  for (int s = first; s < end; ++s)
    for (int i = 0; i < ROUNDS; ++i) {
      span = &spans[s][i];
      if (scenarios[s].before) scenarios[s].before();
      MPI_Barrier(MPI_COMM_WORLD);
      if (rank == 1) nap(MS);
      scenarios[s].waits();
      if (scenarios[s].after) scenarios[s].after();
      MPI_Barrier(MPI_COMM_WORLD);
    }
  if (rank == 1) MPI_Send(spans, sizeof spans, MPI_BYTE, 0, 30, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(theirs, sizeof theirs, MPI_BYTE, 1, 30, MPI_COMM_WORLD, ANYHOW);
  for (int s = first; s < end && rank == 0; ++s) {
    double late[2] = {0}, rest = 0;
    for (int i = 0; i < ROUNDS; ++i) {
      const struct span own = spans[s][i], other = theirs[s][i];
      const double before = other.begin > own.end ? 0 : most(0, other.begin - own.begin);
      late[scenarios[s].sends] += before;
      rest += own.end - own.begin - before;
    }
    printf("%s %s %.0f %.0f %.0f %d\n", scenarios[s].name, scenarios[s].call, 1e9 * late[0], 1e9 * late[1], 1e9 * rest,
           scenarios[s].matched * ROUNDS);
  }
  if (persistent != MPI_REQUEST_NULL) MPI_Request_free(&persistent);
  if (sender != MPI_REQUEST_NULL) MPI_Request_free(&sender);
  MPI_Comm_free(&twice);
  MPI_Comm_free(&turned);
  MPI_Finalize();
  return 0;
}

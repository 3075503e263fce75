/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of rank 1 call MPI. The program prints what it measured by itself, in nanoseconds.
 * Usage: thread_rows CASE [THREADS]. `rows`: THREADS threads at the same time. `turns`: one after the other.
 * `serialized`: one thread, at this level. `together`: main thread and a thread wait at the same time, for a part of
 * their waits. Usage: thread_rows late FUNCTION: a thread of rank 0 waits for messages of rank 1 by this function, on a
 * communicator with the ranks in reverse order. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "work.h"

enum { ROUNDS = 10, MS = 4, MOST = 64 };
static int rank, number = 1, turn;
static MPI_Comm comms[MOST];
static pthread_barrier_t all_called, round_begins;
static volatile int passed; /* set behind the calls, so that none of them is a jump */
static double begins[2], ends[2];

static __attribute__((noinline)) double receive(int tag) {
  int in;
  const double begin = seconds(CLOCK_MONOTONIC);
  MPI_Recv(&in, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  passed = in;
  return seconds(CLOCK_MONOTONIC) - begin;
}
static __attribute__((noinline)) double reduce(int thread) {
  int one = 1, sum;
  const double begin = seconds(CLOCK_MONOTONIC);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comms[thread]);
  passed = sum;
  return seconds(CLOCK_MONOTONIC) - begin;
}

static void* work(void* of_thread) {
  const int thread = (int)(long)of_thread;
  double messages = 0, collectives = 0;
  for (int i = 0; i < ROUNDS; ++i) messages += receive(thread);
  for (int i = 0; i < ROUNDS; ++i) collectives += reduce(thread);
  pthread_barrier_wait(&all_called);
  printf("%d %.0f %.0f\n", 2 * ROUNDS, 1e9 * messages, 1e9 * collectives);
  return NULL;
}
/* The late rank of all these threads. */
static void serve(int threads) {
  const int out = 0;
  for (int i = 0; i < ROUNDS; ++i) {
    nap(MS);
    for (int t = 0; t < threads; ++t) MPI_Send(&out, 1, MPI_INT, 1, t, MPI_COMM_WORLD);
  }
  for (int i = 0; i < ROUNDS; ++i) {
    nap(MS);
    for (int t = 0; t < threads; ++t) reduce(t);
  }
}
static void run_threads(int threads) {
  pthread_t all[MOST];
  pthread_barrier_init(&all_called, NULL, (unsigned)threads);
  for (int i = 0; i < threads; ++i) pthread_create(&all[i], NULL, work, (void*)(long)i);
  for (int i = 0; i < threads; ++i) pthread_join(all[i], NULL);
}

/* Of three rounds, the other thread is in MPI later in one, and not at all in another. */
static void wait_once(int me, int kind) {
  if (me == 1 && kind == 1) nap(MS);
  begins[me] = seconds(CLOCK_MONOTONIC);
  if (me == 0 || kind < 2) receive(me);
  ends[me] = seconds(CLOCK_MONOTONIC);
}
static void* wait_beside(void* unused) {
  for (int i = 0; i < 3 * ROUNDS; ++i) {
    pthread_barrier_wait(&round_begins);
    wait_once(1, i % 3);
    pthread_barrier_wait(&round_begins);
  }
  return unused;
}
static void wait_together(void) {
  const int out = 0;
  double together = 0;
  pthread_t beside;
  pthread_barrier_init(&round_begins, NULL, 2);
  if (rank == 1) pthread_create(&beside, NULL, wait_beside, NULL);
  for (int i = 0; i < 3 * ROUNDS; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
      pthread_barrier_wait(&round_begins);
      wait_once(0, i % 3);
      pthread_barrier_wait(&round_begins);
      const double begin = begins[0] > begins[1] ? begins[0] : begins[1];
      const double end = ends[0] < ends[1] ? ends[0] : ends[1];
      if (i % 3 < 2 && end > begin) together += end - begin;
    } else {
      nap(3 * MS);
      MPI_Send(&out, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
      if (i % 3 < 2) MPI_Send(&out, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    }
  }
  if (rank == 1) pthread_join(beside, NULL);
  if (rank == 1) printf("%.0f\n", 1e9 * together);
}

/* Returns whether the message is there. */
static int ask(const char* function, MPI_Request* request, int* in) {
  int found = 0;
  MPI_Status status;
  if (strcmp(function, "testall") == 0) MPI_Testall(1, request, &found, &status);
  else MPI_Iprobe(strcmp(function, "iprobe") == 0 ? 0 : MPI_ANY_SOURCE, 7, comms[0], &found, MPI_STATUS_IGNORE);
  if (found && *request == MPI_REQUEST_NULL && strstr(function, "probe"))
    MPI_Recv(in, 1, MPI_INT, 0, 7, comms[0], MPI_STATUS_IGNORE);
  return found;
}
/* Nanoseconds for which this thread was ready without a core. */
static double without_core(void) {
  double out = 0;
  FILE* file = fopen("/proc/thread-self/schedstat", "r");
  if (!file || fscanf(file, "%*s %lf", &out) != 1) out = 0;
  if (file) fclose(file);
  return out;
}
static void* wait_for_late(void* function) {
  double waited = 0;
  for (int i = 0; i < ROUNDS; ++i) {
    int in = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    const int started = strcmp(function, "testall") == 0 || strcmp(function, "wait") == 0;
    if (started) MPI_Irecv(&in, 1, MPI_INT, 0, 7, comms[0], &request);
    const double begin = seconds(CLOCK_MONOTONIC);
    if (strcmp(function, "wait") == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
    else if (strncmp(function, "recv", 4) == 0)
      MPI_Recv(&in, 1, MPI_INT, strcmp(function, "recv_any") == 0 ? MPI_ANY_SOURCE : 0, 7, comms[0], MPI_STATUS_IGNORE);
    else
      while (!ask(function, &request, &in)) continue;
    waited += seconds(CLOCK_MONOTONIC) - begin;
    passed = in;
  }
  printf("%.0f %.0f\n", 1e9 * waited, without_core());
  return NULL;
}
static void wait_on_thread(char* function) {
  pthread_t other;
  const int out = 0;
  MPI_Comm_free(&comms[0]);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[0]);
  if (rank == 0) pthread_create(&other, NULL, wait_for_late, function);
  if (rank == 0) pthread_join(other, NULL);
  for (int i = 0; rank == 1 && i < ROUNDS; ++i) {
    nap(5 * MS);
    MPI_Send(&out, 1, MPI_INT, 1, 7, comms[0]);
  }
}

int main(int argc, char** argv) {
  int level;
  if (argc < 2) return 2;
  const int late = strcmp(argv[1], "late") == 0;
  if (argc > 2 && !late) number = atoi(argv[2]);
  const int serialized = strcmp(argv[1], "serialized") == 0;
  MPI_Init_thread(&argc, &argv, serialized ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (level < (serialized ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE)) MPI_Abort(MPI_COMM_WORLD, 3);
  for (int i = 0; i < number; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  if (late) wait_on_thread(argv[2]);
  else if (strcmp(argv[1], "together") == 0) wait_together();
  else if (strcmp(argv[1], "turns") == 0)
    for (turn = 0; turn < number; ++turn) rank == 1 ? run_threads(1) : serve(1);
  else if (rank == 1) run_threads(number);
  else serve(number);
  for (int i = 0; i < number; ++i) MPI_Comm_free(&comms[i]);
  MPI_Finalize();
  return 0;
}

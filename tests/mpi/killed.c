// SPDX-License-Identifier: BSD-3-Clause
// Programs that never end by themselves: test_killed.py kills them, or a signal handler calls MPI_Abort.
// Usage: killed CASE, as in main().
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static int rank, size;

static void pause_ms(long ms) {
  const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

static void sums(int calls, MPI_Comm comm) {
  for (int i = 0; i < calls; ++i) {
    int one = 1, all = 0;
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm);
  }
}

// Jobs without a collective. Rank 1 makes the others wait.
static void messages(const char* how) {
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  for (;;) {
    int in = 0, done = 0;
    MPI_Request pair[2];
    MPI_Status status;
    if (rank == 1) pause_ms(2);
    if (strcmp(how, "blocking") == 0) {
      MPI_Sendrecv(&rank, 1, MPI_INT, next, 1, &in, 1, MPI_INT, before, 1, MPI_COMM_WORLD, &status);
      continue;
    }
    MPI_Irecv(&in, 1, MPI_INT, before, 1, MPI_COMM_WORLD, &pair[0]);
    MPI_Isend(&rank, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &pair[1]);
    if (strcmp(how, "tested") == 0)
      for (; !done; pause_ms(0)) MPI_Testall(2, pair, &done, MPI_STATUSES_IGNORE);
    else MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
  }
}

// Rank 0 leaves MPI after the first calls, and the others wait for the last rank again and again.
static void ages(void) {
  MPI_Comm others;
  MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &others);
  sums(100, MPI_COMM_WORLD);
  while (rank == 0) pause();
  for (;;) {
    if (rank == size - 1) pause_ms(4);
    sums(1, others);
  }
}

static void* idle_thread(void* unused) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  for (;;) pause();
  return unused;
}

static const void* volatile allocator;  // the address where the C library is loaded

static void abort_now(int number) { MPI_Abort(MPI_COMM_WORLD, number == SIGABRT ? 8 : 7); }

// The main thread does nothing else than malloc and free, so inside the C library it is inside these. MPI may have
// threads of its own.
static void abort_inside_malloc(int number, siginfo_t* info, void* context) {
  (void)info;
  Dl_info at;
  const ucontext_t* interrupted = context;
  if (gettid() != getpid()) return;
  if (dladdr((void*)interrupted->uc_mcontext.gregs[REG_RIP], &at) && at.dli_fbase == allocator) abort_now(number);
}

// With a second thread, malloc takes its lock. Chunks of these sizes come from behind it.
enum { kChunks = 64, kChunk = 20000 };
static void allocate(void) {
  static char* chunks[kChunks];
  for (unsigned i = 0;; ++i) {
    free(chunks[i % kChunks]);
    chunks[i % kChunks] = malloc(kChunk + i * 7919 % kChunk);
    if (!chunks[i % kChunks]) MPI_Abort(MPI_COMM_WORLD, 3);
  }
}

static void abort_in_malloc(void) {
  struct sigaction action = {0};
  const struct itimerval often = {{0, 1000}, {0, 1000}};
  Dl_info here;
  void* (*volatile function)(size_t) = malloc;
  if (dladdr((void*)function, &here)) allocator = here.dli_fbase;
  action.sa_sigaction = abort_inside_malloc;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &often, NULL);
  allocate();
}

// As PETSc does: the C library finds the heap corrupted, inside free(), and the handler of its signal ends the job.
static void abort_after_corruption(void) {
  char* volatile chunk = malloc(kChunk), * volatile behind = malloc(kChunk);
  signal(SIGABRT, abort_now);
  memset(chunk + kChunk, 0, 16);
  free(chunk);
  free(chunk);
  free(behind);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  pthread_t thread;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(what, "at_once") == 0) raise(SIGKILL);
  if (strncmp(what, "abort", 5) != 0) {
    if (rank == 0) puts("going");
    fflush(stdout);
    if (strcmp(what, "ages") == 0) ages();
    messages(what);
  }
  if (strstr(what, "late")) sums(100, MPI_COMM_WORLD);
  while (rank != size - 1) pause();
  pthread_create(&thread, NULL, idle_thread, NULL);
  if (strstr(what, "malloc")) abort_in_malloc();
  if (strstr(what, "corrupted")) abort_after_corruption();
  MPI_Abort(MPI_COMM_WORLD, 7);
}

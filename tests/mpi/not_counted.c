/* SPDX-License-Identifier: BSD-3-Clause
   Usage: not_counted CASE. Makes known numbers of calls that a profile leaves out of some figures.
   `kinds`: between the halves of the job, with neighbours, non-blocking, persistent, on another thread of rank 1.
   `requests`: 1,100 non-blocking collectives at a time, which one call completes.
   `sites`: 4,200 call sites. `logs`: 90,000 barriers. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  kInter = 5,
  kNeighbours = 7,
  kNonblocking = 11,
  kPersistent = 3,
  kThreads = 12,
  kRequests = 1100,
  kBarriers = 90000
};

static int rank, ranks;
static pthread_barrier_t all_called;

/* Seven of the threads have rows of their own. */
static void* call_on_thread(void* unused) {
  int in = 0, found;
  MPI_Sendrecv(&rank, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  pthread_barrier_wait(&all_called);
  MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
  pthread_barrier_wait(&all_called);
  return unused;
}

static void call_kinds(void) {
  MPI_Comm half, other, line;
  const int upper = rank >= ranks / 2, round = 1;
  int one = 1, sum, *all = calloc((size_t)ranks + 2, sizeof *all);
  MPI_Request request;
  MPI_Comm_split(MPI_COMM_WORLD, upper, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : ranks / 2, 1, &other);
  for (int i = 0; i < kInter; ++i) MPI_Barrier(other);
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &round, 0, &line);
  for (int i = 0; i < kNeighbours; ++i) {
    MPI_Neighbor_allgather(&one, 1, MPI_INT, all, 1, MPI_INT, line);
    MPI_Ineighbor_allgather(&one, 1, MPI_INT, all, 1, MPI_INT, line, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < kNonblocking; ++i) {
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
#if MPI_VERSION >= 4
  MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int i = 0; i < kPersistent; ++i) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
  MPI_Neighbor_allgather_init(&one, 1, MPI_INT, all, 1, MPI_INT, line, MPI_INFO_NULL, &request);
  for (int i = 0; i < kPersistent; ++i) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
#endif
  pthread_t threads[kThreads];
  pthread_barrier_init(&all_called, NULL, kThreads);
  for (int i = 0; rank == 1 && i < kThreads; ++i) pthread_create(&threads[i], NULL, call_on_thread, NULL);
  for (int i = 0; rank == 1 && i < kThreads; ++i) pthread_join(threads[i], NULL);
  MPI_Comm_free(&line);
  MPI_Comm_free(&other);
  MPI_Comm_free(&half);
  free(all);
}

static void call_with_requests(void) {
  static MPI_Request all[kRequests];
  for (int i = 0; i < kRequests; ++i) MPI_Ibarrier(MPI_COMM_WORLD, &all[i]);
  MPI_Waitall(kRequests, all, MPI_STATUSES_IGNORE);
}

#define TEN(call) \
  call;           \
  call;           \
  call;           \
  call;           \
  call;           \
  call;           \
  call;           \
  call;           \
  call;           \
  call;
#define THOUSAND(call) TEN(TEN(TEN(call)))
static void call_from_sites(void) {
  int in = 0;
#define SITE MPI_Bcast(&in, 1, MPI_INT, 0, MPI_COMM_WORLD)
  THOUSAND(SITE) THOUSAND(SITE) THOUSAND(SITE) THOUSAND(SITE) TEN(TEN(SITE)) TEN(TEN(SITE))
}

int main(int argc, char** argv) {
  int level;
  if (argc < 2) return 2;
  const int kinds = strcmp(argv[1], "kinds") == 0;
  MPI_Init_thread(&argc, &argv, kinds ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (kinds && level == MPI_THREAD_MULTIPLE) call_kinds();
  if (strcmp(argv[1], "requests") == 0) call_with_requests();
  if (strcmp(argv[1], "sites") == 0) call_from_sites();
  if (strcmp(argv[1], "logs") == 0)
    for (int i = 0; i < kBarriers; ++i) MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("level %d, version %d\n", level == MPI_THREAD_MULTIPLE, MPI_VERSION);
  return MPI_Finalize();
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank is late before every allreduce, for a cause that is known.
 * Usage: causes CAUSE RANK CALLS MILLISECONDS [FOLDER]
 * CAUSE is one of none, work, sleep, stop, burner, faults, neighbour, chain, requests, file, pipe, threads; file and
 * pipe use FOLDER. In chain, the late rank sleeps, and two others wait in turn for messages. requests does the same
 * with MPI_Waitall, on a communicator that numbers the ranks backwards.
 * Other CAUSES are for the verdict. In setup, the rank sleeps before the first call only. In prepare, it works before a
 * first barrier only. In burst, a thousand quick barriers stand before a few long calls with work. In bursts, 300 of
 * them stand before each of these calls. In load, it works beside a process that is always busy. A pipeline has no
 * collective: messages pass from rank to rank, and the rank works longer on each. With the environment variable
 * THREAD_MULTIPLE, MPI is started at that level. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

static double kernel_ms(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return 1e3 * (double)usage.ru_stime.tv_sec + 1e-3 * (double)usage.ru_stime.tv_usec;
}

static double faulted_ms; /* in the kernel */
static void fault(double ms) {
  const double begin = kernel_ms();
  const size_t bytes = 1 << 20;
  for (const double until = seconds(CLOCK_THREAD_CPUTIME_ID) + ms / 1e3; seconds(CLOCK_THREAD_CPUTIME_ID) < until;) {
    /* All its faults in one call: some virtual machines show half of a single fault as user time. */
    char* p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    munmap(p, bytes);
  }
  faulted_ms += kernel_ms() - begin;
}

/* A process of its own that disturbs its parent for as long as that lives. */
static void disturb(const char* cause, double ms) {
  const pid_t parent = getpid();
  if (fork() != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) {
    if (strcmp(cause, "burner") == 0) continue; /* on the parent's core */
    nap(2 + ms);
    if (kill(parent, SIGSTOP) != 0) _exit(0);
    nap(ms);
    kill(parent, SIGCONT);
  }
}

/* Writes that reach the disk, through MPI. */
static void write_file(MPI_File file, double ms) {
  static char data[4096];
  for (const double until = seconds(CLOCK_MONOTONIC) + ms / 1e3; seconds(CLOCK_MONOTONIC) < until;) {
    MPI_File_write_at(file, 0, data, (int)sizeof data, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
  }
}

/* A process that answers each byte after some time. */
static int ask[2], answer[2];
static void serve(double ms) {
  if (pipe(ask) != 0 || pipe(answer) != 0) exit(4);
  if (fork() != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (char byte; read(ask[0], &byte, 1) == 1;) {
    nap(ms);
    if (write(answer[1], &byte, 1) != 1) break;
  }
  _exit(0);
}
static void read_slowly(void) {
  char byte = 0;
  if (write(ask[1], &byte, 1) != 1 || read(answer[0], &byte, 1) != 1) exit(4);
}

/* Threads of the late rank that compute while it computes. They have its core, because they inherit its affinity. */
static atomic_int burning;
static void* burn(void* unused) {
  for (;;)
    if (atomic_load(&burning)) step(1000);
    else nap(0.2);
  return unused;
}

/* Rank `first` sleeps, and each of the two ranks after it waits for a message of the one before. */
static void chain(int rank, int first, int size, double ms) {
  int token = 0;
  const int hop = (rank - first + size) % size;
  if (hop == 0) nap(ms);
  if (hop == 1 || hop == 2)
    MPI_Recv(&token, 1, MPI_INT, (rank - 1 + size) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (hop == 0 || hop == 1) MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
}

/* The same, and the waiting ranks also get a message of a rank that is not late. */
static void chain_of_requests(MPI_Comm backwards, int rank, int first, int size, double ms) {
  MPI_Request requests[4];
  MPI_Status statuses[4];
  int token[4] = {0}, n = 0;
  const int hop = (rank - first + size) % size, on_time = (first + 3) % size;
  if (hop == 3)
    for (int to = 1; to <= 2; ++to) {
      MPI_Isend(&token[n], 1, MPI_INT, size - 1 - (first + to) % size, 1, backwards, &requests[n]);
      ++n;
    }
  if (hop == 0) nap(ms);
  if (hop == 1 || hop == 2) {
    MPI_Irecv(&token[n], 1, MPI_INT, size - 1 - on_time, 1, backwards, &requests[n]);
    ++n;
    MPI_Irecv(&token[n], 1, MPI_INT, size - 1 - (rank - 1 + size) % size, 0, backwards, &requests[n]);
    ++n;
  }
  MPI_Waitall(n, requests, statuses);
  if (hop == 0 || hop == 1) MPI_Send(&token[3], 1, MPI_INT, size - 1 - (rank + 1) % size, 0, backwards);
}

/* Each rank works on an item of the rank before it and hands it on. The late rank works longer. */
static void pipeline(int rank, int late, int size, int items, double ms) {
  for (int i = 0; i < items; ++i) {
    int item = i;
    MPI_Request request;
    if (rank > 0) {
      MPI_Irecv(&item, 1, MPI_INT, rank - 1, 2, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    compute(rank == late ? ms : ms / 4);
    if (rank + 1 < size) MPI_Ssend(&item, 1, MPI_INT, rank + 1, 2, MPI_COMM_WORLD);
  }
}

/* A communicator may be freed while its messages are in transfer. */
static void free_in_flight(MPI_Comm comm, int rank, int size) {
  MPI_Request requests[2];
  int sent = rank, received = -1;
  MPI_Irecv(&received, 1, MPI_INT, (rank + size - 1) % size, 0, comm, &requests[0]);
  MPI_Isend(&sent, 1, MPI_INT, (rank + 1) % size, 0, comm, &requests[1]);
  MPI_Comm_free(&comm);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  if (received != (rank + size - 1) % size) MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const char* folder = argc > 5 ? argv[5] : ".";
  const char* cause = argv[1];
  const int late = atoi(argv[2]), calls = atoi(argv[3]);
  const double ms = atof(argv[4]);
  /* The launcher gives the rank before MPI does. A child is made before MPI runs. */
  const char* number = getenv(getenv("PMI_RANK") ? "PMI_RANK" : "OMPI_COMM_WORLD_RANK");
  const int is_late = number && atoi(number) == late;
  const int own_core = strcmp(cause, "burner") == 0 || strcmp(cause, "threads") == 0;
  if (own_core) {
    cpu_set_t allowed, mine;
    CPU_ZERO(&mine);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return 3;
    int core = 0;
    for (int skip = is_late ? 0 : 1; !CPU_ISSET(core, &allowed) || skip-- > 0;) ++core;
    CPU_SET(core, &mine);
    sched_setaffinity(0, sizeof mine, &mine);
  }
  calibrate();
  if (is_late && strcmp(cause, "stop") == 0) disturb(cause, ms);
  /* The late rank has the first core, and shares it with more burners than the other core has ranks. */
  const char* ranks = getenv(getenv("PMI_SIZE") ? "PMI_SIZE" : "OMPI_COMM_WORLD_SIZE");
  if (is_late && strcmp(cause, "burner") == 0)
    for (int i = 0; i < 3 * (ranks ? atoi(ranks) : 4); ++i) disturb(cause, ms);
  if (is_late && strcmp(cause, "pipe") == 0) serve(ms);
  if (is_late && strcmp(cause, "load") == 0) disturb("burner", ms);
  int level;
  if (getenv("THREAD_MULTIPLE")) MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  else MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  /* The same work on all ranks: their own calibrations differ by some per cent. By messages, since the first
     collective is a subject of the tests, and PMPI calls of a program count on Open MPI. */
  for (int other = 1; rank == 0 && other < size; ++other)
    MPI_Send(&steps_per_ms, 1, MPI_DOUBLE, other, 0, MPI_COMM_WORLD);
  if (rank > 0) MPI_Recv(&steps_per_ms, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (is_late && strcmp(cause, "threads") == 0)
    for (int i = 0; i <= size; ++i) {
      pthread_t thread;
      if (pthread_create(&thread, NULL, burn, NULL) != 0) return 3;
    }
  MPI_File file = MPI_FILE_NULL;
  if (is_late && strcmp(cause, "file") == 0) {
    char path[4096];
    snprintf(path, sizeof path, "%s/written", folder);
    if (MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
      return 4;
  }
  enum { kFlights = 500 };
  MPI_Comm backwards, flights[kFlights];
  const int in_flight = strcmp(cause, "requests") == 0 && calls <= kFlights;
  for (int i = 0; in_flight && i < calls; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &flights[i]);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &backwards);
  const int whole = strcmp(cause, "pipeline") == 0;
  if (whole) pipeline(rank, late, size, calls, ms);
  if (strcmp(cause, "prepare") == 0) {
    if (rank == late) compute(ms * calls);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (strcmp(cause, "burst") == 0)
    for (int i = 0; i < 1000; ++i) MPI_Barrier(MPI_COMM_WORLD);
  for (int i = whole ? calls : 0; i < calls; ++i) {
    if (strcmp(cause, "bursts") == 0)
      for (int k = 0; k < 300; ++k) MPI_Barrier(MPI_COMM_WORLD);
    atomic_store(&burning, 1);
    /* With an own core, longer than a time slice. Many ranks would wait for a core of those that compute. */
    compute(own_core ? 12 * ms : size > 2 && strcmp(cause, "stop") != 0 ? 0.2 : 2);
    atomic_store(&burning, 0);
    if (strcmp(cause, "chain") == 0) chain(rank, late, size, ms);
    if (in_flight) free_in_flight(flights[i], rank, size);
    if (strcmp(cause, "requests") == 0) chain_of_requests(backwards, rank, late, size, ms);
    if (strcmp(cause, "neighbour") == 0) { /* the late rank waits for a message of the next one, which sleeps */
      int token = 0;
      if (rank == (late + 1) % size) {
        nap(ms);
        MPI_Send(&token, 1, MPI_INT, late, 0, MPI_COMM_WORLD);
      }
      if (rank == late) {
        MPI_Recv(&token, 1, MPI_INT, (late + 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        compute(1);
      }
    } else if (rank == late) {
      if (strcmp(cause, "work") == 0 || strncmp(cause, "burst", 5) == 0 || strcmp(cause, "load") == 0) compute(ms);
      if (strcmp(cause, "sleep") == 0 || (i == 0 && strcmp(cause, "setup") == 0)) nap(ms);
      if (strcmp(cause, "faults") == 0) fault(ms);
      if (strcmp(cause, "file") == 0) write_file(file, ms);
      if (strcmp(cause, "pipe") == 0) read_slowly();
    }
    int one = 1, sum;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != size) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (faulted_ms > 0) printf("%.3f\n", faulted_ms);
  if (file != MPI_FILE_NULL) MPI_File_close(&file);
  MPI_Comm_free(&backwards);
  MPI_Finalize();
  return 0;
}

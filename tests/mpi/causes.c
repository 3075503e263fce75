/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank is late before every allreduce, for a cause that is known. Usage: causes CAUSE RANK CALLS MILLISECONDS
 * CAUSE: none, work, sleep, stop, burner, faults, neighbour. Each rank computes for 2 ms before each call. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static double seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Steps of arithmetic. A loop around a clock would be time in the kernel. */
static void step(long steps) {
  static volatile double x = 1;
  for (long i = 0; i < steps; ++i) x = x * 0.999 + 0.001;
}

static long steps_per_ms;
static void compute(double ms) { step((long)(ms * (double)steps_per_ms)); }
static void calibrate(void) {
  const long steps = 1000000;
  const double begin = seconds(CLOCK_THREAD_CPUTIME_ID);
  step(steps);
  steps_per_ms = (long)((double)steps / (1e3 * (seconds(CLOCK_THREAD_CPUTIME_ID) - begin))) + 1;
}

static void nap(double ms) {
  const struct timespec t = {0, (long)(1e6 * ms)};
  nanosleep(&t, NULL);
}

static void fault(double ms) {
  const size_t bytes = 1 << 20;
  for (const double until = seconds(CLOCK_MONOTONIC) + ms / 1e3; seconds(CLOCK_MONOTONIC) < until;) {
    char* p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < bytes; i += 4096) p[i] = 1;
    munmap(p, bytes);
  }
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

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const char* cause = argv[1];
  const int late = atoi(argv[2]), calls = atoi(argv[3]);
  const double ms = atof(argv[4]);
  /* The launcher gives the rank before MPI does. A child is made before MPI runs. */
  const char* number = getenv("PMI_RANK");
  const int is_late = number && atoi(number) == late;
  if (strcmp(cause, "burner") == 0) {
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
  const char* ranks = getenv("PMI_SIZE");
  if (is_late && strcmp(cause, "burner") == 0)
    for (int i = 0; i < 3 * (ranks ? atoi(ranks) : 4); ++i) disturb(cause, ms);
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < calls; ++i) {
    compute(strcmp(cause, "burner") == 0 ? 12 * ms : 2); /* longer than a time slice */
    if (strcmp(cause, "neighbour") == 0) { /* the late rank waits for a message of the next one, which sleeps */
      int token = 0;
      if (rank == (late + 1) % size) nap(ms), MPI_Send(&token, 1, MPI_INT, late, 0, MPI_COMM_WORLD);
      if (rank == late)
        MPI_Recv(&token, 1, MPI_INT, (late + 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), compute(1);
    } else if (rank == late) {
      if (strcmp(cause, "work") == 0) compute(ms);
      if (strcmp(cause, "sleep") == 0) nap(ms);
      if (strcmp(cause, "faults") == 0) fault(ms);
    }
    int one = 1, sum;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != size) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}

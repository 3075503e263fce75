// SPDX-License-Identifier: BSD-3-Clause
// Programs for the learning loop. All reduce integers and check the sums.
//   learn two_sites CALLS COUNT STEP_US   two call sites of one size; rank 1 late at the first, rank 3 (or the last)
//   late
//                                         at the second
//   learn moving CALLS COUNT STEP_US      the late rank changes every 500 calls
//   learn later CALLS COUNT STEP_US       three quarters of the calls from the first place, every tenth of them
//                                         non-blocking; then all from the second place with rank 1 late
//   learn resting CALLS COUNT SEED        like `later`, with more places than the cache holds and several operations,
//                                         types, sizes and temporary communicators; prints calls and bytes per
//                                         operation
//   learn divergent CALLS COUNT SEED      ranks reach the same reductions from random places, mixed with broadcasts,
//                                         non-blocking reductions and two communicators
//   learn varying CALLS COUNT SEED        nested loops with varying trip counts
//   learn bits CALLS COUNT LATE STEP_US   sums of doubles whose bits depend on the order of additions; rank LATE is
//   late;
//                                         prints a hash of all sums
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, size, count;
static long *in, *out;

static void pause_us(long us) {
  struct timespec t = {us / 1000000, us % 1000000 * 1000};
  if (us > 0) nanosleep(&t, NULL);
}

static void fill(long salt) {
  for (int i = 0; i < count; ++i) in[i] = salt + rank + i;
}
static void check(long salt, int ranks, long rank_sum) {
  for (int i = 0; i < count; ++i)
    if (out[i] != ranks * (salt + i) + rank_sum) {
      printf("rank %d: wrong sum at %d\n", rank, i);
      MPI_Abort(MPI_COMM_WORLD, 7);
    }
}

#define PLACE(name)                                                         \
  static __attribute__((noinline, noipa)) void name(int n, MPI_Comm comm) { \
    MPI_Allreduce(in, out, n, MPI_LONG, MPI_SUM, comm);                     \
    __asm__ volatile("" : : : "memory");                                    \
  }
PLACE(first_place)
PLACE(second_place)
PLACE(third_place)

static struct { long calls, bytes; } did[6];
enum { kAllreduce, kBcast, kBarrier, kReduce, kIallreduce, kPair };
static void did_one(int what, long bytes) {
  ++did[what].calls;
  did[what].bytes += bytes;
}

/// Several places that the compiler must not merge.
#define HERE(k, n, comm)                                \
  case k:                                               \
    MPI_Allreduce(in, out, n, MPI_LONG, MPI_SUM, comm); \
    did_one(kAllreduce, n * 8L);                        \
    __asm__ volatile("# " #k);                          \
    break;
#define SOME(n, comm)                                                                                     \
  switch (shared(6)) {                                                                                    \
    HERE(0, n, comm) HERE(1, n, comm) HERE(2, n, comm) HERE(3, n, comm) HERE(4, n, comm) HERE(5, n, comm) \
  }

/// The same numbers on every rank.
static unsigned long shared_state;
static unsigned shared(unsigned below) {
  shared_state = shared_state * 6364136223846793005UL + 1442695040888963407UL;
  return (unsigned)(shared_state >> 33) % below;
}
/// Different numbers on each rank.
static unsigned long own_state;
static unsigned own(unsigned below) {
  own_state = own_state * 6364136223846793005UL + 1442695040888963407UL;
  return (unsigned)(own_state >> 33) % below;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* mode = argc > 1 ? argv[1] : "two_sites";
  const long calls = argc > 2 ? atol(argv[2]) : 300;
  count = argc > 3 ? atoi(argv[3]) : 1000;
  const long extra = argc > 4 ? atol(argv[4]) : 1000;
  in = calloc((size_t)count, sizeof *in);
  out = calloc((size_t)count, sizeof *out);
  const long all = (long)size * (size - 1) / 2;
  void (*const places[])(int, MPI_Comm) = {first_place, second_place, third_place};
  if (strcmp(mode, "two_sites") == 0) {
    for (long i = 0; i < calls; ++i) {
      fill(i);
      if (rank == 1) pause_us(extra);
      first_place(count, MPI_COMM_WORLD);
      check(i, size, all);
      if (rank == size - 1) pause_us(extra);
      second_place(count, MPI_COMM_WORLD);
      check(i, size, all);
    }
  } else if (strcmp(mode, "moving") == 0) {
    for (long i = 0; i < calls; ++i) {
      fill(i);
      if (rank == i / 500 % size) pause_us(extra);
      first_place(count, MPI_COMM_WORLD);
      check(i, size, all);
    }
  } else if (strcmp(mode, "bits") == 0) {
    const int late = atoi(argv[4]);
    const long step = atol(argv[5]);
    double *mine = (double*)in, *sums = (double*)out;
    unsigned long hash = 14695981039346656037UL;
    own_state = 77 + 1000003UL * (unsigned long)rank;
    for (int i = 0; i < calls; ++i) {
      for (int k = 0; k < count; ++k) mine[k] = (own(2000001) - 1e6) / (1 + own(9973));
      if (rank == late) pause_us(step);
      MPI_Allreduce(mine, sums, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      for (int k = 0; k < count; ++k) {
        unsigned long bits;
        memcpy(&bits, &sums[k], sizeof bits);
        hash = (hash ^ bits) * 1099511628211UL;
      }
    }
    if (rank == 0) printf("hash %lx\n", hash);
  } else if (strcmp(mode, "later") == 0) {
    for (long i = 0; i < calls; ++i) {
      const int early = i < calls * 3 / 4;
      fill(i);
      if (!early && rank == 1) pause_us(extra);
      if (early && i % 10 == 0) {
        MPI_Request request;
        MPI_Iallreduce(in, out, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      } else {
        (early ? first_place : second_place)(count, MPI_COMM_WORLD);
      }
      check(i, size, all);
    }
  } else if (strcmp(mode, "resting") == 0) {
    shared_state = (unsigned long)extra;
    const int most = count;
    MPI_Comm other = MPI_COMM_NULL, pair;
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2, rank, &pair);
    for (long i = 0; i < calls; ++i) {
      // Long stretches of one kind, so that most calls equal the call before.
      const unsigned what = i / 3000 % 3 == 0 ? 0 : shared(200);
      count = (1 + (int)shared(8)) * most / 8;
      fill(i);
      if (what == 199) {
        MPI_Request request;
        MPI_Iallreduce(in, out, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        did_one(kIallreduce, count * 8L);
        check(i, size, all);
      } else if (what == 198) {
        if (other == MPI_COMM_NULL) MPI_Comm_dup(MPI_COMM_WORLD, &other);
        else MPI_Comm_free(&other);
      } else if (what >= 190) {
        SOME(count, other == MPI_COMM_NULL ? MPI_COMM_WORLD : other);
        check(i, size, all);
      } else if (what >= 170) {
        int number = (int)i;
        MPI_Bcast(&number, 1, MPI_INT, (int)(i % size), MPI_COMM_WORLD);
        did_one(kBcast, 4);
        if (number != (int)i) MPI_Abort(MPI_COMM_WORLD, 7);
      } else if (what >= 160) {
        MPI_Barrier(MPI_COMM_WORLD);
        did_one(kBarrier, 0);
      } else if (what >= 150) {
        MPI_Reduce(in, out, count, MPI_LONG, MPI_SUM, (int)(i % size), MPI_COMM_WORLD);
        did_one(kReduce, count * 8L);
        if (rank == i % size) check(i, size, all);
      } else if (what >= 100) {
        SOME(count, MPI_COMM_WORLD);
        check(i, size, all);
      } else {
        first_place(count, MPI_COMM_WORLD);
        did_one(kAllreduce, count * 8L);
        check(i, size, all);
      }
      // The same places on a communicator of another size.
      if (size > 2 && rank < 2 && i / 3000 % 3 == 2) {
        third_place(count, pair);
        did_one(kPair, count * 8L);
        first_place(count, pair);
        did_one(kPair, count * 8L);
        check(i, 2, 1);
      }
    }
    MPI_Comm_free(&pair);
    // Latecomer serves the following calls, from the same call on all ranks.
    count = most;
    for (long i = 0; i < 20000; ++i) {
      fill(i);
      second_place(count, MPI_COMM_WORLD);
      did_one(kAllreduce, count * 8L);
      check(i, size, all);
    }
    if (other != MPI_COMM_NULL) MPI_Comm_free(&other);
    static const char* const names[] = {"allreduce", "bcast", "barrier", "reduce", "iallreduce", "pair"};
    for (int k = 0; rank == 0 && k < 6; ++k) printf("%s %ld %ld\n", names[k], did[k].calls, did[k].bytes);
  } else {
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    const int divergent = strcmp(mode, "divergent") == 0;
    shared_state = (unsigned long)extra;
    own_state = (unsigned long)extra * 77 + (unsigned long)rank;
    for (long i = 0; i < calls;) {
      const unsigned trips = 1 + shared(divergent ? 3 : 40);
      for (unsigned t = 0; t < trips && i < calls; ++t, ++i) {
        const unsigned what = divergent ? shared(12) : t % 3 == 2 ? 11 : 0;
        const int n = 1 + (int)shared(divergent ? (unsigned)count : 1);
        const int keep = count;
        count = n;
        fill(i);
        if (what == 10) {
          MPI_Bcast(in, n, MPI_LONG, (int)(i % size), MPI_COMM_WORLD);
        } else if (what == 9) {
          MPI_Request request;
          MPI_Iallreduce(in, out, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
          MPI_Wait(&request, MPI_STATUS_IGNORE);
          check(i, size, all);
        } else {
          places[divergent ? own(3) : what == 11](n, what == 8 ? other : MPI_COMM_WORLD);
          check(i, size, all);
        }
        count = keep;
        if (divergent && own(4000) == 0) pause_us(2000);
      }
    }
    MPI_Comm_free(&other);
  }
  if (rank == 0) printf("done %ld\n", calls);
  MPI_Finalize();
  return 0;
}

// SPDX-License-Identifier: BSD-3-Clause
// One allreduce with many callers, in random order, from two threads: by the same return address at the same depth of
// the stack, over frames of changing size, directly and by recursion. Prints the number of calls per caller.
#include <alloca.h>
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>
#include <utility>

namespace {
constexpr int kCallers = 24, kCalls = 3000;
}

#define FRAME extern "C" __attribute__((noinline, noclone, visibility("default")))

FRAME int reached(MPI_Comm comm) {
  int one = 1, all = 0;
  const int rc = MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm);
  asm volatile("" : : "r"(&all));
  return rc;
}

/// Each instance is a separate function. In every third one the size of the frame changes at each call.
template <int N>
__attribute__((noinline, noclone)) int caller(MPI_Comm comm, unsigned bytes) {
  if constexpr (N % 3 == 0) {
    void* some = alloca(16 + bytes % 512);
    std::memset(some, N, 16);
    asm volatile("" : : "r"(some) : "memory");
  }
  const int rc = reached(comm);
  asm volatile("" : : "r"(N));  // prevents a tail call and merging of the functions
  return rc;
}
using Caller = int (*)(MPI_Comm, unsigned);
template <int... N>
constexpr std::array<Caller, kCallers> make(std::integer_sequence<int, N...>) {
  return {caller<N>...};
}
constexpr auto callers = make(std::make_integer_sequence<int, kCallers>());

FRAME int deeper(int more, Caller to, MPI_Comm comm, unsigned bytes) {
  int rc;
  if (more > 0) {
    rc = deeper(more - 1, to, comm, bytes);
    asm volatile("" : : "r"(rc));
  } else {
    rc = to(comm, bytes);
    asm volatile("" : : "r"(rc), "r"(&rc));
  }
  return rc;
}

FRAME void work(MPI_Comm comm, unsigned seed, int (*counts)[2]) {
  std::mt19937 random(seed);
  for (int i = 0; i < kCalls; ++i) {
    const auto n = static_cast<std::size_t>(random() % kCallers);
    const int more = static_cast<int>(random() % 4);
    deeper(more, callers[n], comm, random());
    ++counts[n][more > 0];
  }
}

int main(int argc, char** argv) {
  int provided, rank;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm comms[2];
  for (auto& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  static int counts[2][kCallers][2];
  std::atomic<bool> done{false};
  std::thread other([&] {
    if (provided == MPI_THREAD_MULTIPLE) work(comms[1], 2, counts[1]);
    done = true;
#ifdef __SANITIZE_THREAD__
    for (;;) pause();  // libunwind's actions at the end of a thread crash libtsan
#endif
  });
  work(comms[0], 1, counts[0]);
  while (!done) usleep(1000);
#ifdef __SANITIZE_THREAD__
  other.detach();
#else
  other.join();
#endif
  if (rank == 0)
    for (int n = 0; n < kCallers; ++n)
      std::printf("caller %d %d %d\n", n, counts[0][n][0] + counts[1][n][0], counts[0][n][1] + counts[1][n][1]);
  for (auto& comm : comms) MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}

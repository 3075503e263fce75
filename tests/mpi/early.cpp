// SPDX-License-Identifier: BSD-3-Clause
// MPI in a static object: MPI_Init before main, collectives in both, MPI_Finalize after main. The object is in the
// program, or with LIBRARY and HOST in a shared library of it. That one starts before the preloaded libraries.
extern "C" __attribute__((visibility("default"))) int early_run();

#ifndef HOST
#include <mpi.h>

#include <cstdio>

namespace {

bool sums(int calls) {
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  bool right = true;
  for (int i = 0; i < calls; ++i) {
    int in = rank + i, out = 0;
    MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    right = right && out == size * (size - 1) / 2 + i * size;
  }
  return right;
}

struct Library {
  bool right;
  Library() {
    MPI_Init(nullptr, nullptr);
    right = sums(30);
  }
  ~Library() {
    right = sums(30) && right;
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) std::printf(right ? "right\n" : "wrong\n");
    MPI_Finalize();
  }
} library;

}  // namespace

extern "C" int early_run() {
  library.right = sums(40) && library.right;
  return 0;
}
#endif

#ifndef LIBRARY
int main() { return early_run(); }
#endif

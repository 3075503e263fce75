// SPDX-License-Identifier: BSD-3-Clause
// A program with MPI in a static object: MPI_Init before main, collectives in both, MPI_Finalize after main.
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

int main() {
  library.right = sums(40) && library.right;
  return 0;
}

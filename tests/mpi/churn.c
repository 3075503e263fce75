// SPDX-License-Identifier: BSD-3-Clause
// Programs with hundreds of plans and communicators. Each prints the seconds of the work and whether all sums were
// right.
//   sizes N         allreduces of N sizes on MPI_COMM_WORLD
//   shapes N        N times: creates a communicator over half of the ranks or all ranks, sums some sizes on it, frees
//   it.
//                   The halves differ from rank to rank, and so do the plans that a process has made before.
//   short N CALLS   N times: duplicates MPI_COMM_WORLD, makes CALLS sums on the duplicate, frees it
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMost = 40000 };
static int in[kMost], out[kMost], bad;

static void sum(MPI_Comm comm, int count) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < count; ++i) {
    in[i] = rank * (i % 7 + 1);
    out[i] = -1;
  }
  MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, comm);
  for (int i = 0; i < count; ++i) bad |= out[i] != size * (size - 1) / 2 * (i % 7 + 1);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int n = argc > 2 ? atoi(argv[2]) : 0, calls = argc > 3 ? atoi(argv[3]) : 0;
  const double begin = MPI_Wtime();
  unsigned random = 12345;
  for (int i = 0; i < n; ++i) {
    random = random * 1103515245u + 12345u;  // the same on all ranks
    if (strcmp(argv[1], "sizes") == 0) {
      sum(MPI_COMM_WORLD, 100 + i * (kMost - 100) / n);
    } else if (strcmp(argv[1], "shapes") == 0) {
      MPI_Comm half;
      const int kind = (int)(random >> 16) % 3;  // neighbours, every other rank, all ranks
      MPI_Comm_split(MPI_COMM_WORLD, kind == 0 ? rank < size / 2 : kind == 1 ? rank % 2 : 0, 0, &half);
      // Each half sums other sizes, and another number of them.
      const int mine = kind == 2 ? 0 : kind == 1 ? rank % 2 : rank < size / 2;
      for (int k = 0; k < 2 + 3 * mine; ++k)
        sum(half, 1 + (int)((random >> 8) + 7919u * (unsigned)(k + 5 * mine)) % kMost);
      MPI_Comm_free(&half);
    } else {
      MPI_Comm copy;
      MPI_Comm_dup(MPI_COMM_WORLD, &copy);
      for (int k = 0; k < calls; ++k) sum(copy, 8);
      MPI_Comm_free(&copy);
    }
  }
  const double took = MPI_Wtime() - begin;
  if (bad) printf("rank %d wrong\n", rank);
  if (rank == 0) printf("%.3f s\n", took);
  MPI_Finalize();
  return bad;
}

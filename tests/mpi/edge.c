// SPDX-License-Identifier: BSD-3-Clause
// In every iteration another rank is late, which history cannot predict. Each rank makes an edge call half-way.
// Usage: edge ITERATIONS [forgetful|breaking|unused]. With forgetful, a rank sometimes omits the edge call. With
// breaking, sometimes another collective comes in between. With unused, a last edge call has no allreduce, and comes
// when rank 0 waits in MPI_Finalize.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int iterations = argc > 1 ? atoi(argv[1]) : 300;
  const char* mode = argc > 2 ? argv[2] : "";
  enum { kCount = 3000 };
  static int mine[kCount], sum[kCount];
  unsigned shared = 12345, own = 777u * (unsigned)(rank + 1);
  for (int i = 0; i < iterations; ++i) {
    shared = shared * 1103515245u + 12345u;
    own = own * 1103515245u + 12345u;
    const int late = (int)(shared >> 16) % size;
    usleep(rank == late ? 1500 : 150);
    if (strcmp(mode, "forgetful") != 0 || (own >> 16) % 50 != 0) MPI_Pcontrol(5711, 0.5);
    usleep(rank == late ? 1500 : 150);
    for (int k = 0; k < kCount; ++k) mine[k] = rank + k + i;
    if (strcmp(mode, "breaking") == 0 && (shared >> 20) % 40 == 0) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(mine, sum, kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int k = 0; k < kCount; ++k) wrong += sum[k] != size * (size - 1) / 2 + size * (k + i);
  }
  if (strcmp(mode, "unused") == 0) {
    if (rank > 0) usleep(200000);
    MPI_Pcontrol(5711, 0.5);
  }
  if (wrong) printf("rank %d: %d wrong\n", rank, wrong);
  MPI_Finalize();
  if (rank == 0 && !wrong) printf("right\n");
  return wrong != 0;
}

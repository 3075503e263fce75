// SPDX-License-Identifier: BSD-3-Clause
// Sends blocks in another order than in memory, as sorted trees do: copied together first, or with an indexed datatype.
// Prints medians of interleaved messages on two ranks, including the answer.
// Usage: mpiexec -n 2 permutation [ROUNDS]
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int rounds = argc > 1 ? atoi(argv[1]) : 201;
  double* times[2] = {malloc(sizeof(double) * (size_t)rounds), malloc(sizeof(double) * (size_t)rounds)};
  if (rank == 0) printf("%8s %10s %14s %14s %8s\n", "blocks", "bytes each", "copies, us", "indexed, us", "ratio");
  for (int blocks = 4; blocks <= 64; blocks *= 4)
    for (int each = 16; each <= 1 << 18; each *= 8) {
      const size_t total = (size_t)blocks * (size_t)each;
      char *data = calloc(2 * total, 1), *packed = malloc(total), back = 0;
      MPI_Aint* places = malloc(sizeof(MPI_Aint) * (size_t)blocks);
      for (int i = 0; i < blocks; ++i)
        places[i] = (MPI_Aint)((i * 7 + 3) % (2 * blocks)) * each;  // every block once, no two adjacent
      for (int round = 0; round < rounds; ++round)
        for (int way = 0; way < 2; ++way) {
          MPI_Barrier(MPI_COMM_WORLD);
          const double before = MPI_Wtime();
          if (rank == 1) {
            MPI_Recv(packed, (int)total, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&back, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
          } else {
            if (way == 0) {
              for (int i = 0; i < blocks; ++i)
                memcpy(packed + (size_t)i * (size_t)each, data + places[i], (size_t)each);
              MPI_Send(packed, (int)total, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            } else {  // per call, because the buffers and sizes of a program change
              MPI_Datatype type;
              MPI_Type_create_hindexed_block(blocks, each, places, MPI_BYTE, &type);
              MPI_Type_commit(&type);
              MPI_Send(data, 1, type, 1, 0, MPI_COMM_WORLD);
              MPI_Type_free(&type);
            }
            MPI_Recv(&back, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          }
          times[way][round] = 1e6 * (MPI_Wtime() - before);
        }
      for (int way = 0; way < 2; ++way) qsort(times[way], (size_t)rounds, sizeof(double), compare);
      if (rank == 0)
        printf("%8d %10d %14.2f %14.2f %7.2fx\n", blocks, each, times[0][rounds / 2], times[1][rounds / 2],
               times[1][rounds / 2] / times[0][rounds / 2]);
      free(data);
      free(packed);
      free(places);
    }
  MPI_Finalize();
  return 0;
}

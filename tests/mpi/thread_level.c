// SPDX-License-Identifier: BSD-3-Clause
// Prints the thread level that a program gets. Usage: thread_level init|LEVEL
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  int provided = -1, level = -1, is_main = -1, rank, ours = 1, sum = 0;
  if (argc > 1 && strcmp(argv[1], "init") != 0) MPI_Init_thread(&argc, &argv, atoi(argv[1]), &provided);
  else MPI_Init(&argc, &argv);
  MPI_Query_thread(&level);
  MPI_Is_thread_main(&is_main);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 100; ++i) MPI_Allreduce(&ours, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d: provided %d, level %d, main %d, sum %d\n", rank, provided, level, is_main, sum);
  MPI_Finalize();
  return 0;
}

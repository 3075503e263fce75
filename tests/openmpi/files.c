/* SPDX-License-Identifier: BSD-3-Clause */
/* Collective writes to a file, whose plugin calls MPI's functions, and one allreduce after each. With `nonblocking`,
 * also non-blocking writes between gathers, in which rank 1 is late. Usage: files PATH [nonblocking] */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void write_blocks(const char* path, int rank, int size) {
  MPI_File file;
  MPI_Datatype blocks;
  char buffer[1000];
  memset(buffer, rank, sizeof buffer);
  MPI_Type_vector(10, 100, 100 * size, MPI_CHAR, &blocks);
  MPI_Type_commit(&blocks);
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  MPI_File_set_view(file, 100 * rank, MPI_CHAR, blocks, "native", MPI_INFO_NULL);
  MPI_File_write_all(file, buffer, 1000, MPI_CHAR, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Type_free(&blocks);
}

static void write_beside_gathers(const char* path, int rank, int size) {
  MPI_File file;
  char buffer[1000], all[64] = {0}, one = (char)rank;
  memset(buffer, rank, sizeof buffer);
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  for (int i = 0; i < 300; ++i) {
    if (rank == 1) usleep(200);
    MPI_Gather(&one, 1, MPI_CHAR, all, 1, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int k = 0; k < 20; ++k) {
      MPI_Request request;
      MPI_File_iwrite_at(file, 1000 * (MPI_Offset)rank, buffer, 1000, MPI_CHAR, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int r = 0; rank == 0 && r < size; ++r)
      if (all[r] != r) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_File_close(&file);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 5; ++i) {
    write_blocks(argv[1], rank, size);
    int sum;
    PMPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* of the program: it counts on Open MPI */
    if (sum != size * (size - 1) / 2) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (argc > 2 && strcmp(argv[2], "nonblocking") == 0) write_beside_gathers(argv[1], rank, size);
  if (rank == 0) puts("right");
  MPI_Finalize();
  return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that hangs in a known way after some good calls, on 4 ranks. Usage: hang WAY CALLS
 * WAY: missing, collectives, roots, loop, syscall, killed, order, messages, polls, others, none. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* way = argv[1];
  MPI_Init(&argc, &argv);
  int rank, value = 1, sum, token = 0;
  MPI_Comm first, second;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &first);
  MPI_Comm_dup(MPI_COMM_WORLD, &second);
  for (int i = 0; i < 3; ++i) {
    MPI_Barrier(first);
    MPI_Barrier(second);
  }
  for (int i = 0; i < atoi(argv[2]); ++i) MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (strcmp(way, "missing") == 0 && rank == 2) {
    while (getppid() != 1) usleep(10000);
  } else if (strcmp(way, "loop") == 0 && rank == 2) {
    for (volatile unsigned i = 0;; ++i) {
    }
  } else if (strcmp(way, "syscall") == 0 && rank == 2) {
    pause();
  } else if (strcmp(way, "killed") == 0 && rank == 2) {
    usleep(500000); /* the others reach the next call before the launcher ends them, too */
    raise(SIGKILL);
  } else if (strcmp(way, "messages") == 0 && rank < 2) {
    MPI_Recv(&token, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (strcmp(way, "others") == 0 && rank == 2) {
    MPI_Comm_dup(first, &second);
  } else if (strcmp(way, "polls") == 0 && rank < 2) {
    for (int found = 0; !found;) MPI_Iprobe(1 - rank, 0, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  }
  if (strcmp(way, "collectives") == 0 && rank == 2) {
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (strcmp(way, "roots") == 0) {
    static int large[1 << 20]; /* a short one would leave without its receivers */
    MPI_Bcast(large, 1 << 20, MPI_INT, rank == 2 ? 2 : 1, MPI_COMM_WORLD);
  } else if (strcmp(way, "order") == 0) {
    MPI_Barrier(rank < 2 ? first : second);
    MPI_Barrier(rank < 2 ? second : first);
  } else {
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}

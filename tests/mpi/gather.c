// SPDX-License-Identifier: BSD-3-Clause
// Programs that make it hard to gather or write the profile. Each prints "right" on rank 0. Usage: gather CASE
//   sums: some calls, in a source file whose name is not UTF-8. Further arguments change nothing.
//   memory RANK FIRST LAST: on RANK, the allocations FIRST to LAST in MPI_Finalize fail (count_allocations is
//   preloaded). locale FOLDER: a locale of the environment and another directory; makes calls until the file
//   FOLDER/stop exists.
#include <locale.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((weak)) void fail_allocations(long first, long last);

static int rank, size, bad = 0;

#line 100 "caf\351.c"
static void sums(int calls) {
  for (int i = 0; i < calls; ++i) {
    int in = rank + i, out = 0;
    if (rank == 1) usleep(20);
    MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    bad += out != size * (size - 1) / 2 + i * size;
  }
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "locale") == 0) {
    char half[16];
    if (!setlocale(LC_ALL, "")) return 3;
    snprintf(half, sizeof half, "%.1f", 0.5);
    if (strcmp(half, "0,5") != 0) return 3;
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  sums(300);
  if (strcmp(what, "locale") == 0 && argc > 2) {
    if (chdir(argv[2]) != 0) return 4;
    for (int stop = 0; !stop;) {
      sums(100);
      stop = rank == 0 && access("stop", F_OK) == 0;
      MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
  }
  if (rank == 0) {
    printf(bad ? "wrong\n" : "right\n");
    fflush(stdout);
  }
  if (strcmp(what, "memory") == 0 && argc > 4) {
    if (!fail_allocations) return 5;
    if (rank == atoi(argv[2])) fail_allocations(atol(argv[3]), atol(argv[4]));
  }
  MPI_Finalize();
  return bad != 0;
}

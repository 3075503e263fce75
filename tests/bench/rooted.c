// SPDX-License-Identifier: BSD-3-Clause
// Times of scatter, gather or bcast with one late rank, by the program's own clock. With OP "compute", all ranks
// compute the same work between gathers and none is delayed: this shows the loss of processor time.
// Usage: rooted OP ITERATIONS BYTES LATE_RANK DELAY_MS
// BYTES is the root's total.
//
// Prints in ms: run time (first arrival to last exit), mean elapsed time, elapsed time of the late rank, and computing
// time.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nap.h"

static double work(long steps) {
  volatile double x = 1;
  const double before = MPI_Wtime();
  for (long i = 0; i < steps; ++i) x = x * 1.0000001 + 1e-9;
  return MPI_Wtime() - before;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* op = argc > 1 ? argv[1] : "gather";
  const int iterations = argc > 2 ? atoi(argv[2]) : 200, bytes = argc > 3 ? atoi(argv[3]) : 1 << 20,
            late = argc > 4 ? atoi(argv[4]) : 0;
  const double delay = argc > 5 ? atof(argv[5]) : 10;
  const int computes = strcmp(op, "compute") == 0, block = bytes / size;
  char *all = calloc((size_t)bytes + 64, 1), *mine = calloc((size_t)bytes + 64, 1);
  double sums[4] = {0, 0, 0, 0};
  int counted = 0;
  const long steps = 10000000;
  for (int i = 0; i < iterations; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    double computing = 0;
    if (computes) computing = work(steps);
    else if (rank == late) nap(delay);
    const double arrival = MPI_Wtime();
    if (strcmp(op, "scatter") == 0) MPI_Scatter(all, block, MPI_BYTE, mine, block, MPI_BYTE, 0, MPI_COMM_WORLD);
    else if (strcmp(op, "bcast") == 0) MPI_Bcast(all, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    else MPI_Gather(mine, block, MPI_BYTE, all, block, MPI_BYTE, 0, MPI_COMM_WORLD);
    const double out = MPI_Wtime();
    double first, last, elapsed = out - arrival, sum, of_late = rank == late ? elapsed : 0, of_late_everywhere,
                        computing_sum;
    MPI_Allreduce(&arrival, &first, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&out, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&elapsed, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&of_late, &of_late_everywhere, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&computing, &computing_sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (i < iterations / 2) continue;  // a plan is in force after the first half
    ++counted;
    sums[0] += last - first;
    sums[1] += sum / size;
    sums[2] += of_late_everywhere;
    sums[3] += computing_sum / size;
  }
  if (rank == 0)
    printf("%.6f %.6f %.6f %.6f\n", 1e3 * sums[0] / counted, 1e3 * sums[1] / counted, 1e3 * sums[2] / counted,
           1e3 * sums[3] / counted);
  MPI_Finalize();
  return 0;
}

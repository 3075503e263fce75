/* SPDX-License-Identifier: BSD-3-Clause */
/* Two loops of OpenMP between allreduces. Usage: loop LENGTH STEPS */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "inject.h"

static void smooth(double* a, const double* b, long n) {
#pragma omp parallel for schedule(static)
  for (long i = 1; i < n - 1; ++i) a[i] = 0.5 * b[i] + 0.25 * (b[i - 1] + b[i + 1]);
}

static double norm(const double* a, long n) {
  double sum = 0;
#pragma omp parallel reduction(+ : sum)
  {
    INJECT
#pragma omp for schedule(static)
    for (long i = 0; i < n; ++i) sum += sqrt(fabs(a[i]));
  }
  return sum;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  const long n = atol(argv[1]), steps = atol(argv[2]);
  double *a = calloc((size_t)n, sizeof *a), *b = calloc((size_t)n, sizeof *b), all = 0;
  for (long i = 0; i < n; ++i) b[i] = sin(0.01 * (double)i);
  for (long s = 0; s < steps; ++s) {
    smooth(a, b, n);
    smooth(b, a, n);
    const double own = norm(b, n);
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  printf("%g\n", all);
  free(a);
  free(b);
  MPI_Finalize();
  return 0;
}

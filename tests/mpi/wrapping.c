// SPDX-License-Identifier: BSD-3-Clause
// A shared library that wraps MPI, with two frames between its caller and MPI.
#include "wrapping.h"

__attribute__((noinline, noclone)) static int reach(int value, MPI_Comm comm) {
  int all = 0;
  MPI_Allreduce(&value, &all, 1, MPI_INT, MPI_SUM, comm);
  return all;
}

__attribute__((visibility("default"))) int library_sum(int value, MPI_Comm comm) {
  const int all = reach(value, comm);
  __asm__ volatile("" : : "r"(all));
  return all;
}

// SPDX-License-Identifier: BSD-3-Clause
// Wrappers of MPI_Allreduce: one in a shared library, and an inlined one.
#pragma once

#include <mpi.h>

#ifdef __cplusplus
extern "C"
#endif
    int
    library_sum(int value, MPI_Comm comm);  // wrapping.c

#ifdef __cplusplus
namespace inlined {

template <typename T>
[[gnu::always_inline]] inline T sum(T value, MPI_Comm comm) {
  T all{};
  MPI_Allreduce(&value, &all, 1, MPI_INT, MPI_SUM, comm);  // line: inlined sum
  return all;
}

[[gnu::always_inline]] inline int norm(int value, MPI_Comm comm) {
  return sum(value * value, comm) + 1;  // line: inlined norm
}

}  // namespace inlined
#endif

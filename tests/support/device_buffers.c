// SPDX-License-Identifier: BSD-3-Clause
// An MPI that supports GPU memory on the rank in GPU_RANK, by the query that GPU_QUERY names.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int supports(const char* query) {
  const char *named = getenv("GPU_QUERY"), *rank = getenv("GPU_RANK"), *own = getenv("PMI_RANK");
  return named && rank && own && strcmp(named, query) == 0 && strcmp(rank, own) == 0;
}
int MPIX_GPU_query_support(int kind, int* supported) {
  *supported = kind == MPIX_GPU_SUPPORT_ZE && supports("MPIX_GPU_query_support");
  return MPI_SUCCESS;
}
int MPIX_Query_cuda_support(void) { return supports("MPIX_Query_cuda_support"); }

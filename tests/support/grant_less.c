// SPDX-License-Identifier: BSD-3-Clause
// An MPI that grants at most MPI_THREAD_SERIALIZED on the ranks in GRANT_LESS ("all" or one rank).
#define _GNU_SOURCE
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const char* who = getenv("GRANT_LESS");
  const char* rank = getenv("PMI_RANK");
  const int less = who && (strcmp(who, "all") == 0 || (rank && strcmp(who, rank) == 0));
  return PMPI_Init_thread(argc, argv, less && required > MPI_THREAD_SERIALIZED ? MPI_THREAD_SERIALIZED : required,
                          provided);
}

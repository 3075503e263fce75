// SPDX-License-Identifier: BSD-3-Clause
// Benchmark support, preloaded behind latecomer: collectives that do nothing, so that what is measured is
// what is added. bare_allreduce is the pass-through wrapper to compare with.
#include <mpi.h>

#define EXPORT __attribute__((visibility("default"), noinline))

static int nothing(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  __asm__ volatile("" : : "r"(in), "r"(out), "r"(count), "r"(type), "r"(op), "r"(comm) : "memory");
  return MPI_SUCCESS;
}

EXPORT int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return nothing(in, out, count, type, op, comm);
}

typedef int Function(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
static Function* volatile next = nothing;

EXPORT int bare_allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
EXPORT int bare_allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const int rc = next(in, out, count, type, op, comm);
  __asm__ volatile("" : : : "memory");
  return rc;
}

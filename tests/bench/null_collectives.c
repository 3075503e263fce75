// SPDX-License-Identifier: BSD-3-Clause
// Collectives that do nothing. Preloaded behind latecomer, they leave only the added time to measure. bare_allreduce is
// the pass-through wrapper for comparison.
#include <mpi.h>
#include <x86intrin.h>

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

// The least work of an observing wrapper: one lookup of the return address, two readings of the counter, one sum. Its
// time scales the bounds that were measured on another machine.
static struct { unsigned long address, time; } least[1 << 14];
EXPORT int least_allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
EXPORT int least_allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const unsigned long address = (unsigned long)__builtin_return_address(0);
  const unsigned long slot = (address >> 1) * 0x9e3779b97f4a7c15ul >> 50;
  const unsigned long begin = __rdtsc();
  const int rc = next(in, out, count, type, op, comm);
  least[slot].address = address;
  least[slot].time += __rdtsc() - begin;
  return rc;
}

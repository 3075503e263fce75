// SPDX-License-Identifier: BSD-3-Clause
// Between the program with latecomer and MPI: makes one call of MPI, or one allocation, fail. The program links this
// library before MPI and the C++ library.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <mpi.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "shim/tags.hpp"

namespace {

enum Kind { kNone, kMpi, kMemory };
// The background engine's thread calls MPI, too.
std::atomic<int> kind = kNone, position = 0, fired = 0;

bool fails(Kind of) {
  if (kind != of || position-- > 0) return false;
  kind = kNone;
  fired = 1;
  return true;
}

/// The messages that agree on the adaptive tree are no part of a schedule. Latecomer's other messages take the
/// functions with counts of type int, which are those of schedules, too, before MPI 4.
bool of_schedule(int tag) {
  const int channel = tag % latecomer::shim::kTagsPerContext;
  return channel != latecomer::shim::kTreeChannel && (MPI_VERSION >= 4 || channel < latecomer::core::kChannels);
}

template <typename Function>
Function* next(std::atomic<Function*>& known, const char* name) {
  if (!known) known = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  return known;
}

void* allocate(std::size_t bytes) {
  void* const out = fails(kMemory) ? nullptr : std::malloc(bytes ? bytes : 1);
  if (!out) throw std::bad_alloc();
  return out;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

/// From now on the call number `at` of MPI (`memory`: the allocation) fails, counted from 0.
EXPORTED void inject_arm(int memory, int at) {
  kind = memory ? kMemory : kMpi;
  position = at;
  fired = 0;
}
/// Whether it has failed. No further call does.
EXPORTED int inject_disarm() {
  kind = kNone;
  return fired;
}

#define TEXT(name) #name
#define INJECT(name, parameters, arguments, eligible)     \
  EXPORTED int name parameters {                          \
    static std::atomic<decltype(&name)> known;            \
    if ((eligible) && fails(kMpi)) return MPI_ERR_INTERN; \
    return next(known, TEXT(name)) arguments;             \
  }
#if MPI_VERSION >= 4
#define NAME(function) function##_c
using Count = MPI_Count;
#else
#define NAME(function) function
using Count = int;
#endif
INJECT(NAME(PMPI_Isend), (const void* b, Count n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* r),
       (b, n, t, to, tag, c, r), of_schedule(tag))
INJECT(NAME(PMPI_Irecv), (void* b, Count n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request* r),
       (b, n, t, from, tag, c, r), of_schedule(tag))
INJECT(NAME(PMPI_Reduce_local), (const void* in, void* inout, Count n, MPI_Datatype t, MPI_Op op),
       (in, inout, n, t, op), true)
INJECT(NAME(PMPI_Sendrecv),
       (const void* b, Count n, MPI_Datatype t, int to, int tag, void* into, Count m, MPI_Datatype u, int from,
        int tag2, MPI_Comm c, MPI_Status* s),
       (b, n, t, to, tag, into, m, u, from, tag2, c, s), true)
INJECT(NAME(PMPI_Unpack), (const void* from, Count bytes, Count* at, void* into, Count n, MPI_Datatype t, MPI_Comm c),
       (from, bytes, at, into, n, t, c), true)
INJECT(NAME(PMPI_Pack), (const void* from, Count n, MPI_Datatype t, void* into, Count bytes, Count* at, MPI_Comm c),
       (from, n, t, into, bytes, at, c), n > 0)

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

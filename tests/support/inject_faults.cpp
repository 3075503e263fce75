// SPDX-License-Identifier: BSD-3-Clause
// Between the program with latecomer and MPI: makes one call of MPI, or one allocation, fail. The program links this
// library before MPI and the C++ library.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <mpi.h>

#include <cstdlib>
#include <new>

namespace {

enum Kind { kNone, kMpi, kMemory };
int kind = kNone, position = 0, fired = 0;

bool fails(Kind of) {
  if (kind != of || position-- > 0) return false;
  kind = kNone, fired = 1;
  return true;
}

/// The messages that agree on the adaptive tree are no part of a schedule.
bool of_tree(int tag) { return tag % 4096 == 4010; }

template <typename Function>
Function* next(Function*& known, const char* name) {
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
EXPORTED void inject_arm(int memory, int at) { kind = memory ? kMemory : kMpi, position = at, fired = 0; }
/// Whether it has failed. No further call does.
EXPORTED int inject_disarm() {
  kind = kNone;
  return fired;
}

#define INJECT(name, parameters, arguments, eligible)     \
  EXPORTED int name parameters {                          \
    static decltype(&name) known;                         \
    if ((eligible) && fails(kMpi)) return MPI_ERR_INTERN; \
    return next(known, #name) arguments;                  \
  }
INJECT(PMPI_Isend_c, (const void* b, MPI_Count n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* r),
       (b, n, t, to, tag, c, r), !of_tree(tag))
INJECT(PMPI_Irecv_c, (void* b, MPI_Count n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request* r),
       (b, n, t, from, tag, c, r), !of_tree(tag))
INJECT(PMPI_Reduce_local_c, (const void* in, void* inout, MPI_Count n, MPI_Datatype t, MPI_Op op),
       (in, inout, n, t, op), true)
INJECT(PMPI_Sendrecv_c,
       (const void* b, MPI_Count n, MPI_Datatype t, int to, int tag, void* into, MPI_Count m, MPI_Datatype u, int from,
        int tag2, MPI_Comm c, MPI_Status* s),
       (b, n, t, to, tag, into, m, u, from, tag2, c, s), true)
INJECT(PMPI_Unpack_c,
       (const void* from, MPI_Count bytes, MPI_Count* at, void* into, MPI_Count n, MPI_Datatype t, MPI_Comm c),
       (from, bytes, at, into, n, t, c), true)
INJECT(PMPI_Pack_c,
       (const void* from, MPI_Count n, MPI_Datatype t, void* into, MPI_Count bytes, MPI_Count* at, MPI_Comm c),
       (from, n, t, into, bytes, at, c), n > 0)

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

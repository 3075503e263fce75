// SPDX-License-Identifier: BSD-3-Clause
// The 129 wrappers, made from collectives.def: 21 rows with counts times {blocking, non-blocking,
// persistent} times {int, MPI_Count}, and the barrier's three.
#include "shim/collectives.def"
#include "shim/intercept.hpp"

#define LATECOMER_STRIP(...) __VA_ARGS__

// Weak references to every PMPI entry point.
#define WEAK6(Name, collective, parameters, arguments, description) \
  LATECOMER_WEAK(PMPI_##Name) LATECOMER_WEAK(PMPI_##Name##_c) LATECOMER_WEAK(PMPI_##Name##_init) LATECOMER_WEAK(PMPI_##Name##_init_c)
#define WEAK_I(Name, collective, parameters, arguments, description) LATECOMER_WEAK(PMPI_I##collective) LATECOMER_WEAK(PMPI_I##collective##_c)
LATECOMER_COLLECTIVES(WEAK6, , , , )
LATECOMER_COLLECTIVES(WEAK_I, , , , )
LATECOMER_WEAK(PMPI_Barrier) LATECOMER_WEAK(PMPI_Ibarrier) LATECOMER_WEAK(PMPI_Barrier_init)

using namespace latecomer::shim;
using latecomer::core::CallKind;
using latecomer::core::Collective;

#define LATECOMER_BODY(function, collective, kind, request, arguments, description)                              \
  return intercept(                                                                                              \
      Collective::collective, CallKind::kind, comm, __builtin_return_address(0), request,                        \
      [&](Describe& d) { description; }, [&] { return P##function arguments; });

#define BLOCKING(Name, collective, parameters, arguments, description)                        \
  LATECOMER_EXPORT int MPI_##Name parameters {                                                \
    LATECOMER_BODY(MPI_##Name, collective, blocking, nullptr, arguments, description)         \
  }
#define BLOCKING_C(Name, collective, parameters, arguments, description)                      \
  LATECOMER_EXPORT int MPI_##Name##_c parameters {                                            \
    LATECOMER_BODY(MPI_##Name##_c, collective, blocking, nullptr, arguments, description)     \
  }
#define NONBLOCKING(Name, collective, parameters, arguments, description)                                        \
  LATECOMER_EXPORT int MPI_I##collective(LATECOMER_STRIP parameters, MPI_Request* request) {                     \
    LATECOMER_BODY(MPI_I##collective, collective, nonblocking, request, (LATECOMER_STRIP arguments, request), description) \
  }
#define NONBLOCKING_C(Name, collective, parameters, arguments, description)                                      \
  LATECOMER_EXPORT int MPI_I##collective##_c(LATECOMER_STRIP parameters, MPI_Request* request) {                 \
    LATECOMER_BODY(MPI_I##collective##_c, collective, nonblocking, request, (LATECOMER_STRIP arguments, request), description) \
  }
#define PERSISTENT(Name, collective, parameters, arguments, description)                                         \
  LATECOMER_EXPORT int MPI_##Name##_init(LATECOMER_STRIP parameters, MPI_Info info, MPI_Request* request) {      \
    LATECOMER_BODY(MPI_##Name##_init, collective, persistent, request, (LATECOMER_STRIP arguments, info, request), description) \
  }
#define PERSISTENT_C(Name, collective, parameters, arguments, description)                                       \
  LATECOMER_EXPORT int MPI_##Name##_init_c(LATECOMER_STRIP parameters, MPI_Info info, MPI_Request* request) {    \
    LATECOMER_BODY(MPI_##Name##_init_c, collective, persistent, request, (LATECOMER_STRIP arguments, info, request), description) \
  }

extern "C" {

LATECOMER_COLLECTIVES(BLOCKING, int, const int*, const int*, const MPI_Aint*)
LATECOMER_COLLECTIVES(NONBLOCKING, int, const int*, const int*, const MPI_Aint*)
LATECOMER_COLLECTIVES(PERSISTENT, int, const int*, const int*, const MPI_Aint*)
LATECOMER_COLLECTIVES(BLOCKING_C, MPI_Count, const MPI_Count*, const MPI_Aint*, const MPI_Aint*)
LATECOMER_COLLECTIVES(NONBLOCKING_C, MPI_Count, const MPI_Count*, const MPI_Aint*, const MPI_Aint*)
LATECOMER_COLLECTIVES(PERSISTENT_C, MPI_Count, const MPI_Count*, const MPI_Aint*, const MPI_Aint*)
LATECOMER_NO_C_COLLECTIVES(BLOCKING)
LATECOMER_NO_C_COLLECTIVES(NONBLOCKING)
LATECOMER_NO_C_COLLECTIVES(PERSISTENT)

// MPICH's mpi_f08 binding calls PMPI_Barrier and PMPI_Ibarrier directly: without these two the operation
// numbers of an f08 rank and a C rank would differ. Handles are structures of one int; ierror is optional.
LATECOMER_EXPORT void mpi_barrier_f08_(const MPI_Comm* handle, int* ierror) {
  const MPI_Comm comm = *handle;
  const int rc = intercept(Collective::barrier, CallKind::blocking, comm, __builtin_return_address(0), nullptr,
                           [](Describe& d) { d.empty(); }, [&] { return PMPI_Barrier(comm); });
  if (ierror) *ierror = rc;
}
LATECOMER_EXPORT void mpi_ibarrier_f08_(const MPI_Comm* handle, MPI_Request* request, int* ierror) {
  const MPI_Comm comm = *handle;
  const int rc = intercept(Collective::barrier, CallKind::nonblocking, comm, __builtin_return_address(0), request,
                           [](Describe& d) { d.empty(); }, [&] { return PMPI_Ibarrier(comm, request); });
  if (ierror) *ierror = rc;
}

}  // extern "C"

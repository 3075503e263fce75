// SPDX-License-Identifier: BSD-3-Clause
// The 129 entry points, made from collectives.def: 21 rows with counts times {blocking, non-blocking,
// persistent} times {int, MPI_Count}, and the barrier's three.
#include "shim/call/run.hpp"
#include "shim/front/collectives.def"
#include "shim/mpi/level.hpp"

#define LATECOMER_STRIP(...) __VA_ARGS__

namespace latecomer::shim {

using core::CallKind;
using core::Collective;

#define LATECOMER_BODY(collective, kind, request, arguments, start, description)            \
  {                                                                                         \
    return intercept(                                                                       \
        Collective::collective, CallKind::kind, comm, __builtin_return_address(0), request, \
        [&](auto& d) { description; }, [&] { return NEXT arguments; }, start);              \
  }
// Of MPI 4: no Fortran binding and no tool reaches their PMPI names.
#define LATECOMER_MPI_LEVEL(symbol, parameters, ...) \
  LATECOMER_ENTRY(int, symbol, parameters) {         \
    const auto NEXT = next::symbol;                  \
    __VA_ARGS__                                      \
  }
// The non-blocking form of the same call, for courteous waiting; a null pointer if MPI has none.
#define LATECOMER_START(symbol, arguments) \
  [&](MPI_Request* request) { return next::symbol(LATECOMER_STRIP arguments, request); }

#define NONBLOCKING(Name, collective, parameters, arguments, description)          \
  LATECOMER_LEVELS(                                                                \
      int, MPI_I##collective, (LATECOMER_STRIP parameters, MPI_Request * request), \
      (LATECOMER_STRIP arguments, request),                                        \
      LATECOMER_BODY(collective, nonblocking, request, (LATECOMER_STRIP arguments, request), nullptr, description))
#define NONBLOCKING_C(Name, collective, parameters, arguments, description)       \
  LATECOMER_MPI_LEVEL(                                                            \
      MPI_I##collective##_c, (LATECOMER_STRIP parameters, MPI_Request * request), \
      LATECOMER_BODY(collective, nonblocking, request, (LATECOMER_STRIP arguments, request), nullptr, description))
#define BLOCKING(Name, collective, parameters, arguments, description)      \
  LATECOMER_LEVELS(int, MPI_##Name, parameters, arguments,                  \
                   LATECOMER_BODY(collective, blocking, nullptr, arguments, \
                                  LATECOMER_START(MPI_I##collective, arguments), description))
#define BLOCKING_C(Name, collective, parameters, arguments, description)       \
  LATECOMER_MPI_LEVEL(MPI_##Name##_c, parameters,                              \
                      LATECOMER_BODY(collective, blocking, nullptr, arguments, \
                                     LATECOMER_START(MPI_I##collective##_c, arguments), description))
#define PERSISTENT(Name, collective, parameters, arguments, description)                                          \
  LATECOMER_MPI_LEVEL(MPI_##Name##_init, (LATECOMER_STRIP parameters, MPI_Info info, MPI_Request * request),      \
                      LATECOMER_BODY(collective, persistent, request, (LATECOMER_STRIP arguments, info, request), \
                                     nullptr, description))
#define PERSISTENT_C(Name, collective, parameters, arguments, description)                                        \
  LATECOMER_MPI_LEVEL(MPI_##Name##_init_c, (LATECOMER_STRIP parameters, MPI_Info info, MPI_Request * request),    \
                      LATECOMER_BODY(collective, persistent, request, (LATECOMER_STRIP arguments, info, request), \
                                     nullptr, description))

LATECOMER_COLLECTIVES(NONBLOCKING, int, const int*, const int*, const MPI_Aint*)
LATECOMER_COLLECTIVES(NONBLOCKING_C, MPI_Count, const MPI_Count*, const MPI_Aint*, const MPI_Aint*)
LATECOMER_NO_C_COLLECTIVES(NONBLOCKING)
LATECOMER_COLLECTIVES(BLOCKING, int, const int*, const int*, const MPI_Aint*)
LATECOMER_COLLECTIVES(BLOCKING_C, MPI_Count, const MPI_Count*, const MPI_Aint*, const MPI_Aint*)
LATECOMER_NO_C_COLLECTIVES(BLOCKING)
LATECOMER_COLLECTIVES(PERSISTENT, int, const int*, const int*, const MPI_Aint*)
LATECOMER_COLLECTIVES(PERSISTENT_C, MPI_Count, const MPI_Count*, const MPI_Aint*, const MPI_Aint*)
LATECOMER_NO_C_COLLECTIVES(PERSISTENT)

// MPICH's mpi_f08 binding calls PMPI_Barrier and its variants directly. Without these entry points, the call numbers of
// an f08 rank and a C rank would differ. Handles are structures of one int. ierror is optional.
LATECOMER_F08_ENTRY(void, mpi_barrier_f08_, (const MPI_Comm* handle, int* ierror)) {
  const MPI_Comm comm = *handle;
  int rc = MPI_SUCCESS;
  rc = intercept(
      Collective::barrier, CallKind::blocking, comm, __builtin_return_address(0), nullptr, [](auto& d) { d.empty(); },
      [&] { return next::mpi_barrier_f08_(handle, &rc), rc; },
      [&](MPI_Request* request) { return next::MPI_Ibarrier(comm, request); });
  if (ierror) *ierror = rc;
}
LATECOMER_F08_ENTRY(void, mpi_ibarrier_f08_, (const MPI_Comm* handle, MPI_Request* request, int* ierror)) {
  int rc = MPI_SUCCESS;
  rc = intercept(
      Collective::barrier, CallKind::nonblocking, *handle, __builtin_return_address(0), request,
      [](auto& d) { d.empty(); }, [&] { return next::mpi_ibarrier_f08_(handle, request, &rc), rc; });
  if (ierror) *ierror = rc;
}
LATECOMER_F08_ENTRY(void, mpi_barrier_init_f08_,
                    (const MPI_Comm* handle, const MPI_Info* info, MPI_Request* request, int* ierror)) {
  int rc = MPI_SUCCESS;
  rc = intercept(
      Collective::barrier, CallKind::persistent, *handle, __builtin_return_address(0), request,
      [](auto& d) { d.empty(); }, [&] { return next::mpi_barrier_init_f08_(handle, info, request, &rc), rc; });
  if (ierror) *ierror = rc;
}

}  // namespace latecomer::shim

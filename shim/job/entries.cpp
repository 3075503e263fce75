// SPDX-License-Identifier: BSD-3-Clause
// The entry points that start, end or inform the job, including those of MPI.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "shim/call/completion.hpp"
#include "shim/engine/engine.hpp"
#include "shim/guard.hpp"
#include "shim/job/parts.hpp"
#include "shim/log.hpp"
#include "shim/mpi/level.hpp"
#include "shim/waiting/courteous.hpp"

namespace latecomer::shim {
namespace {

/// With more ranks than cores on this machine, MPI_Init itself would be slow. MPI_Init then decides for the job.
void yield_during_init() {
#ifdef OPEN_MPI
  const char* size = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
#else
  const char* size = std::getenv("PMI_SIZE");
#endif
  if (size && std::atol(size) > sysconf(_SC_NPROCESSORS_ONLN)) yield_in_progress(true);
}

/// No exception may leave the handler of MPI_Init.
template <typename Start>
void start(Start begin) noexcept {
  if (const Outcome done = attempt(begin); !done) warn("this rank is not observed: %s", done.why);
}

/// Starts MPI with `plain`, as the program asked, or with `init_thread` at the level that the engine needs. Then
/// reports the level that the program would have got without latecomer.
template <typename InitThread, typename Plain>
int start_mpi(int required, int* provided, InitThread init_thread, Plain plain) {
  yield_during_init();
  expect_start(true);
  int rc;
  bool engine = false;
  attempt([&] { engine = required < MPI_THREAD_MULTIPLE && engine_wanted(); });
  if (engine) {
    int granted = MPI_THREAD_SINGLE;
    rc = init_thread(MPI_THREAD_MULTIPLE, &granted);
    if (rc == MPI_SUCCESS) told_level = std::min(granted, required);
    if (provided) *provided = told_level;
  } else {
    rc = plain();
  }
  expect_start(false);
  if (rc == MPI_SUCCESS) start(start_job);
  return rc;
}

}  // namespace

void say_edge(double fraction) {
  if (!active.load(std::memory_order_acquire) || !(fraction >= 0 && fraction <= 1)) return;
  engine_edge(fraction, common_now());
  const JobLock lock;
  job().edge_said = true;
  ++job().mine.edges;
  job().mine.edge_sum += fraction;
}

/// Gets MPI_Pcontrol's first argument, and the register of a first double argument.
extern "C" LATECOMER_HIDDEN void latecomer_pcontrol(int level, double fraction) {
  if (level == 5711) say_edge(fraction);  // LATECOMER_EDGE
}

int flush() try {
  if (!active.load() || !job().spool.begun()) return 1;
  const KeepErrno keep;
  const JobLock lock;
  return write_snapshot(job(), false) ? 0 : 1;
} catch (...) {
  return 1;
}

// The Fortran 2008 binding bypasses the C level here. ierror is optional.
LATECOMER_LEVELS(int, MPI_Init_thread, (int* argc, char*** argv, int required, int* provided),
                 (argc, argv, required, provided), {
                   return start_mpi(
                       required, provided, [&](int level, int* granted) { return NEXT(argc, argv, level, granted); },
                       [&] { return NEXT(argc, argv, required, provided); });
                 })
LATECOMER_LEVELS(int, MPI_Init, (int* argc, char*** argv), (argc, argv), {
  return start_mpi(
      default_level(), nullptr,
      [&](int level, int* granted) { return next::MPI_Init_thread(argc, argv, level, granted); },
      [&] { return NEXT(argc, argv); });
})
LATECOMER_F08_ENTRY(void, mpi_init_thread_f08_, (const int* required, int* provided, int* ierror)) {
  int rc = MPI_SUCCESS;
  start_mpi(
      *required, provided,
      [&](int level, int* granted) { return next::mpi_init_thread_f08_(&level, granted, &rc), rc; },
      [&] { return next::mpi_init_thread_f08_(required, provided, &rc), rc; });
  if (ierror) *ierror = rc;
}
LATECOMER_F08_ENTRY(void, mpi_init_f08_, (int* ierror)) {
  int rc = MPI_SUCCESS;
  start_mpi(
      default_level(), nullptr,
      [&](int level, int* granted) { return next::mpi_init_thread_f08_(&level, granted, &rc), rc; },
      [&] { return next::mpi_init_f08_(&rc), rc; });
  if (ierror) *ierror = rc;
}
// MPI_Finalize must not begin while a thread is inside MPI: MPI 4.0, section 11.2.2 forbids it, and MPICH leaves locks
// behind.
LATECOMER_LEVELS(int, MPI_Finalize, (void), (), {
  stop_engine();
  return NEXT();
})
LATECOMER_F08_ENTRY(void, mpi_finalize_f08_, (int* ierror)) {
  stop_engine();
  next::mpi_finalize_f08_(ierror);
}
LATECOMER_LEVELS(int, MPI_Query_thread, (int* provided), (provided), {
  const int rc = NEXT(provided);
  if (rc == MPI_SUCCESS && told_level >= 0) *provided = told_level;
  return rc;
})
LATECOMER_F08_ENTRY(void, mpi_query_thread_f08_, (int* provided, int* ierror)) {
  int rc = MPI_SUCCESS;
  next::mpi_query_thread_f08_(provided, &rc);
  if (rc == MPI_SUCCESS && told_level >= 0) *provided = told_level;
  if (ierror) *ierror = rc;
}
#if MPI_VERSION >= 4
LATECOMER_ENTRY(int, MPI_Session_init, (MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session)) {
  const int rc = next::MPI_Session_init(info, errhandler, session);
  if (rc == MPI_SUCCESS) start([&] { start_session(*session); });
  return rc;
}
LATECOMER_F08_ENTRY(void, mpi_session_init_f08_,
                    (const MPI_Info* info, const MPI_Errhandler* errhandler, MPI_Session* session, int* ierror)) {
  int rc = MPI_SUCCESS;
  next::mpi_session_init_f08_(info, errhandler, session, &rc);
  if (rc == MPI_SUCCESS) start([&] { start_session(*session); });
  if (ierror) *ierror = rc;
}
#endif
// MPI_Pcontrol has unknown arguments, which a handler in C cannot pass on. The stub calls the function in assembly and
// passes every argument on unchanged.
LATECOMER_PASSING_ENTRY(MPI_Pcontrol, latecomer_pcontrol)

LATECOMER_LEVELS(int, MPI_Abort, (MPI_Comm comm, int code), (comm, code), {
  before_abort();
  return NEXT(comm, code);
})
LATECOMER_F08_ENTRY(void, mpi_abort_f08_, (const MPI_Comm* comm, const int* code, int* ierror)) {
  before_abort();
  next::mpi_abort_f08_(comm, code, ierror);
}

}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// What latecomer does in the calls that start and end MPI or tell its thread level, and behind the functions of
// latecomer.h. The generated handlers of C and of Fortran use these templates (shim/front/functions.def), and `native`
// is MPI's own call.
#pragma once

#include <algorithm>

#include "shim/engine/engine.hpp"
#include "shim/job/snapshots.hpp"
#include "shim/job/start.hpp"
#include "shim/job/thread_level.hpp"

namespace latecomer::shim {

/// Before MPI starts. Returns whether it has to start at MPI_THREAD_MULTIPLE, for the engine.
bool begin_mpi(int required);

/// Starts MPI with `native`, as the program asked, or with `at_level` at the level that the engine needs. Then reports
/// the level that the program would have got without latecomer.
template <typename AtLevel, typename Native>
int start_mpi(int required, int* provided, AtLevel at_level, Native native) {
  int rc;
  if (begin_mpi(required)) {
    int granted = MPI_THREAD_SINGLE;
    rc = at_level(MPI_THREAD_MULTIPLE, &granted);
    if (rc == MPI_SUCCESS) told_level = std::min(granted, required);
    if (provided) *provided = told_level;
  } else {
    rc = native();
  }
  expect_start(false);
  if (rc == MPI_SUCCESS) start_job();
  return rc;
}

template <typename Native>
int begin_session(const MPI_Session* session, Native native) {
  const int rc = native();
  if (rc == MPI_SUCCESS) start_session(*session);
  return rc;
}

template <typename Native>
int finish_session(Native native) {
  end_session();
  return native();
}

/// MPI_Query_thread tells the program the level of MPI_Init.
template <typename Native>
int tell_level(int* provided, Native native) {
  const int rc = native();
  if (rc == MPI_SUCCESS && told_level >= 0) *provided = told_level;
  return rc;
}

/// MPI_Finalize must not begin while a thread is inside MPI: MPI 4.0, section 11.2.2 forbids it, and MPICH leaves locks
/// behind.
template <typename Native>
int end_mpi(Native native) {
  stop_engine();
  return native();
}

template <typename Native>
int abort_job(Native native) {
  before_abort();
  return native();
}

/// The functions of latecomer.h, behind the front.
void say_edge(double fraction);
int flush_profile();

}  // namespace latecomer::shim

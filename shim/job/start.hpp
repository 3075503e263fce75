// SPDX-License-Identifier: BSD-3-Clause
// The start of the job.
#pragma once

#include "shim/mpi/api.hpp"

#if MPI_VERSION < 4  // sessions are of MPI 4, and libraries of MPI 3.1 may have them: Open MPI 5 has
struct ompi_instance_t;
using MPI_Session = ompi_instance_t*;
#endif

namespace latecomer::shim {

#if MPI_VERSION < 4
/// nullptr: the library has no sessions.
inline int (*PMPI_Group_from_session_pset)(MPI_Session session, const char* name, MPI_Group* group) = nullptr;
#endif

/// Called around MPI_Init: a call inside it is no sign that MPI has started unseen.
void expect_start(bool begins);

/// Meets the other ranks. Call it after a successful MPI_Init or MPI_Init_thread.
void start_job() noexcept;

/// Starts observation in a session without MPI_Init. MPI_COMM_WORLD does not exist, but its process set contains this
/// rank.
void start_session(MPI_Session session) noexcept;
/// Called before a session ends. Observation ends with the last session without MPI_Init: the library may forget its
/// keys of attributes then, and give them to the program in its next session.
void end_session() noexcept;

}  // namespace latecomer::shim

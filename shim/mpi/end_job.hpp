// SPDX-License-Identifier: BSD-3-Clause
// The only way in which latecomer ends a job.
#pragma once

#include "shim/mpi/api.hpp"

namespace latecomer::shim {

/// Calls MPI_Abort after the launcher has read the message that says why. `comm`: of all ranks. `error`: the status of
/// the job. Waits at most one second for a launcher that does not read. Allocates no memory.
void end_job(MPI_Comm comm, int error) noexcept;

}  // namespace latecomer::shim

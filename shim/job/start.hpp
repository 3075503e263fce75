// SPDX-License-Identifier: BSD-3-Clause
// The start of the job.
#pragma once

namespace latecomer::shim {

/// Called around MPI_Init: a call inside it is no sign that MPI has started unseen.
void expect_start(bool begins);

/// Meets the other ranks. Call it after a successful MPI_Init or MPI_Init_thread.
void start_job() noexcept;

/// Starts observation in a session without MPI_Init. MPI_COMM_WORLD does not exist, but its process set contains this
/// rank.
#if MPI_VERSION >= 4
void start_session(MPI_Session session) noexcept;
#endif

}  // namespace latecomer::shim

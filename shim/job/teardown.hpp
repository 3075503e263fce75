// SPDX-License-Identifier: BSD-3-Clause
// The end of the job in MPI_Finalize.
#pragma once

namespace latecomer::shim {

/// Sets an attribute of MPI_COMM_SELF, so that MPI_Finalize ends the job.
void set_end();
/// Ends the job of this process now: writes what it has observed, and observes nothing from now on.
void end_observation() noexcept;

}  // namespace latecomer::shim

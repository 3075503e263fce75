// SPDX-License-Identifier: BSD-3-Clause
// Courteous waiting: a rank that waits inside MPI gives its core to other processes. This file owns the hook into the
// progress function of UCX, and a wait that polls. It must not decide which calls wait courteously.
#pragma once

#include "shim/mpi/api.hpp"

namespace latecomer::shim {

/// Turns the progress hook on or off. Until then, native waits spin. Returns false if this MPI has no hook.
bool yield_in_progress(bool on);

/// Whether this MPI gives the core away while it waits, without the hook.
bool yields_by_itself();

/// Makes network_progress count, if this MPI has the hook.
void count_progress();

/// Completes a request, and gives the core away meanwhile. Returns an MPI error code.
int wait_courteously(MPI_Request request);

}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// Courteous waiting: a rank that waits inside MPI gives its core to other processes. This file owns the hook into the
// progress function of UCX, and a wait that polls. It must not decide which calls wait courteously.
#pragma once

#include "shim/mpi.hpp"

namespace latecomer::shim {

/// Until now, waiting natively has spun. Turns the progress hook on or off; false if this MPI has none.
bool yield_in_progress(bool on);

/// From here on progress_of_thread() counts, where this MPI has the hook.
void count_progress();
/// What the network library did for this thread so far: it changes while a message is in the middle of its way.
unsigned progress_of_thread();

/// Completes a request, giving the core away meanwhile.
int wait_courteously(MPI_Request request);

}  // namespace latecomer::shim

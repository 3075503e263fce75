// SPDX-License-Identifier: BSD-3-Clause
// The life of a communicator's state (CommState): it begins at the first collective and ends with the communicator.
// This file must not look at single calls.
#pragma once

#include "shim/state/job.hpp"

namespace latecomer::shim {

/// The state of a communicator, created at its first collective; nullptr if that fails.
CommState* state_of_any(MPI_Comm comm);
inline CommState* state_of(MPI_Comm comm) {
  return comm == MPI_COMM_WORLD && job().world_state ? job().world_state : state_of_any(comm);
}

/// The attribute's delete function: ends the state of a communicator.
int on_communicator_end(MPI_Comm, int, void* attribute, void*);

}  // namespace latecomer::shim

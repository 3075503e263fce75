// SPDX-License-Identifier: BSD-3-Clause
// Finds out whether all ranks are preloaded.
#pragma once

#include "shim/state/job.hpp"

namespace latecomer::shim {

/// Confirms that every rank of MPI_COMM_WORLD runs this library build. All ranks get the same answer. Uses no MPI
/// communication: MPI_Publish_name and MPI_Lookup_name are local calls.
bool roll_call(int rank, int size, double timeout_s);

}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// Non-blocking and persistent collectives under way: a request's arrival is its start, its exit the
// return of the call that completes it. A fixed table; what does not fit is counted without exit.
#pragma once

#include "shim/dispatch/completion.hpp"

namespace latecomer::shim {

/// A collective that a request stands for.
struct PendingCall {
  MPI_Request request = MPI_REQUEST_NULL;
  CommState* state = nullptr;  ///< nullptr once the communicator is gone
  std::uint64_t n = 0;
  profiles::CallRecord record;
  std::int32_t comm_size = 0;
  bool persistent = false, started = false;
  bool rested = false;  ///< begun in an epoch that is not logged
};

void note_pending(const PendingCall& call);

/// The communicator is going away: its pending calls finish without a log.
void forget_pending(const CommState* state);

}  // namespace latecomer::shim

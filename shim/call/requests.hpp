// SPDX-License-Identifier: BSD-3-Clause
// The pending non-blocking and persistent collectives, in a table of fixed size. The arrival of a request is its start.
// Its exit is the return of the call that completes it.
#pragma once

#include "shim/state/communicator.hpp"

namespace latecomer::shim {

/// A collective with a request.
struct PendingCall {
  MPI_Request request{};
  CommState* state = nullptr;  ///< nullptr once the communicator is gone
  std::uint64_t n = 0;
  profiles::CallRecord record;
  std::int32_t comm_size = 0;
  bool persistent = false, started = false;
  bool rested = false;  ///< begun in an epoch that is not logged
  profiles::Tally share = profiles::Tally::part;
};

void note_pending(const PendingCall& call);

/// In MPI_Finalize: all operations are complete, and the end of those that are left was not seen.
void lose_pending();

/// At the end of a communicator: its pending calls finish without a log.
void forget_pending(const CommState* state);

}  // namespace latecomer::shim

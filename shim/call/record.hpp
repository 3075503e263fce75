// SPDX-License-Identifier: BSD-3-Clause
// Record: the log of the epoch, the counters of the site, and what others see while the call runs.
#pragma once

#include "shim/call/describe.hpp"
#include "shim/call/requests.hpp"

namespace latecomer::shim {

/// Shows in shared memory that the process is inside this call.
void show_call(const ObservedCall& call);
/// Adds the call to the log of its epoch, without its exit.
void log_call(const ObservedCall& call);
/// The time in the call until `exit`, without that in functions of the program and other calls of MPI beneath it. To be
/// asked before record_exit().
Nanoseconds own_time(const ObservedCall& call, Nanoseconds exit);
/// Adds the exit to the log, and the call to the counters of its site. `own`: its own_time().
void record_exit(ObservedCall& call, Nanoseconds exit, Nanoseconds own);
/// Mode observe, at the end of an epoch: notes its length. If some epochs rest, notes a resting one, or adds the
/// elapsed times of a logged one to the counters of the sites, for itself and for others. `end`: of the epoch.
void weigh_epoch(CommState& state, Nanoseconds end);
/// Adds the exit of a call that has completed later, by its request, to the same. `call.record` has the exit time.
void record_completion(const PendingCall& call);
/// A non-blocking call was started or a persistent one made: remembers the request.
void defer_call(ObservedCall& call, MPI_Request request) noexcept;

}  // namespace latecomer::shim

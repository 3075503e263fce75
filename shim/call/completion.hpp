// SPDX-License-Identifier: BSD-3-Clause
// The exit of a call, recorded when it happens: at once, or when a request completes.
#pragma once

#include "shim/state/clocks.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/shared.hpp"

namespace latecomer::shim {

/// now() on the job's common clock.
inline Nanoseconds common_now() { return job_clocks().common_now(); }

/// Exit time of call n in the log, if it is still there.
inline void write_exit(const JobLock& lock, CommState& state, std::uint64_t n, Nanoseconds exit) {
  if (profiles::CallRecord* const record = state.log(lock).find(n)) record->exit = exit;
}

/// Exit of a call that completed later; `record` has its exit time. `state`: nullptr if the communicator is gone.
void finish_later(CommState* state, std::uint64_t n, const profiles::CallRecord& record, int comm_size, bool rested,
                  profiles::Tally share);

}  // namespace latecomer::shim

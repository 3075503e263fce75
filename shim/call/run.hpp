// SPDX-License-Identifier: BSD-3-Clause
// Run: the way of one intercepted collective. It is described, takes its steps, runs natively or by the executor, and
// is recorded. The entry functions use this template.
#pragma once

#include <type_traits>

#include "shim/call/communicators.hpp"
#include "shim/call/describe.hpp"
#include "shim/call/idle.hpp"
#include "shim/call/record.hpp"
#include "shim/call/step.hpp"
#include "shim/causes/usage.hpp"
#include "shim/executor/executor.hpp"
#include "shim/guard.hpp"
#include "shim/state/clocks.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/process.hpp"
#include "shim/state/rules.hpp"
#include "shim/waiting/courteous.hpp"

namespace latecomer::shim {

/// The state of the communicator if a call on it is observed, or nullptr.
inline CommState* observed_state(MPI_Comm comm) {
  if (!active.load(std::memory_order_acquire) && !start_late()) return nullptr;
  return Guard::program_calls() ? state_of(comm) : nullptr;
}

/// `start`: begins the non-blocking form of a blocking call, or nullptr.
template <typename Fill, typename Native, typename Start = std::nullptr_t>
int intercept_collective(core::Collective op, core::CallKind kind, MPI_Comm comm, void* return_address,
                         MPI_Request* request, Fill fill, Native native, [[maybe_unused]] Start start = nullptr) {
  end_polls();
  if (kind == core::CallKind::blocking &&
      count_on_short_path(op, comm, return_address, __builtin_frame_address(0), fill)) {
    const int rc = native();
    live_leave();
    return rc;
  }
  CommState* const state = observed_state(comm);
  if (!state) return native();
  const Guard guard(Layer::ours);
  if (state->idle.granted > 0) [[unlikely]]
    idle_stop(*state);
  ObservedCall call(*state, op, kind, job_clocks().common_now());
  // On an inter-communicator some arguments are not significant on every rank, so read none.
  if (!state->foreign) {
    Describe description(call);
    fill(description);
  }
  begin_call(call, return_address, __builtin_frame_address(0));
  int rc = MPI_SUCCESS;
  {
    const Guard beneath(Layer::program);  // an operator, an error handler
    if (call.decision.algorithm) {
      rc = state->dispatch.executor->run_call(call);
    } else {
      bool courteous = false;
      if constexpr (!std::is_null_pointer_v<Start>) {
        courteous = job_rules().nonblocking_waits && may_wait_nonblocking(*state, call.signature);
        if (courteous) {
          MPI_Request pending = MPI_REQUEST_NULL;
          rc = start(&pending);
          if (rc == MPI_SUCCESS) rc = wait_courteously(pending);
        }
      }
      if (!courteous) rc = native();
    }
  }
  if (kind == core::CallKind::blocking) end_call(call);
  else if (rc == MPI_SUCCESS) defer_call(call, *request);
  if (call.decision.algorithm) state->dispatch.executor->rethrow_exception();
  return rc;
}

}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// Step: what a rank does before and after a call, as the agreement of its communicator says
// (core/agreement/member.hpp).
#pragma once

#include "shim/call/describe.hpp"
#include "shim/state/communicator.hpp"

namespace latecomer::shim {

/// Whether this native blocking call waits in its non-blocking form. Depends only on U(n) and on settings that are
/// equal on all ranks.
bool may_wait_nonblocking(const CommState& state, const core::Signature& signature);

/// Counts the call, takes part in the exchange if the call is a boundary, and decides. `frame`: the handler's frame
/// address. Without memory, this rank counts and agrees as the others do, or ends the job.
void begin_call(ObservedCall& call, void* return_address, void* frame) noexcept;
/// The other end: what all ranks do together before they leave the call, and the record. What MPI returned makes no
/// difference: an error may be this rank's alone.
void end_call(ObservedCall& call) noexcept;

}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// One intercepted call from arrival to exit: the data that its steps pass on. Describe fills in the signature and the
// operands. Step adds the number, the site and the decision. The executor and record read them.
#pragma once

#include "core/agreement/agreement.hpp"
#include "shim/causes/usage.hpp"
#include "shim/runner/operands.hpp"
#include "shim/sites/sites.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/rules.hpp"

namespace latecomer::shim {

/// The source of a call's pattern, and the arrival that it expects of this rank: after the first arrival, -1 without a
/// pattern.
struct ExpectedArrival {
  bool edge = false;
  Nanoseconds expected = -1;
};

/// `operands` are filled in for calls that may be dispatched.
struct ObservedCall {
  explicit ObservedCall(CommState& of, core::Collective op, core::CallKind kind, Nanoseconds at)
      : state(&of),
        arrival(at),
        decides(job_rules().decides && !(job_rules().may_idle && of.member.rests() &&
                                         of.member.sequence().next_number() < of.member.sequence().next_boundary())) {
    signature.op = op;
    signature.kind = kind;
  }
  CommState* state;
  SiteSlot* slot = nullptr;
  Nanoseconds arrival;
  Nanoseconds marked = mpi_time.marked();  ///< at the arrival
  bool decides;  ///< the call's description is needed in full: it may be dispatched, or learned from
  core::Signature signature;
  core::Decision decision;
  static constexpr std::uint64_t kUncounted = UINT64_MAX;
  std::uint64_t n = kUncounted;
  bool counts() const { return n != kUncounted; }
  std::uint8_t algorithm = 0;  ///< as in CallRecord
  bool ended_epoch = false;
  std::uintptr_t plain_address = 0;  ///< in an idle epoch: of the site, if it tells the site
  std::uintptr_t from = 0;           ///< in an idle epoch: the handler's return address
  std::int32_t through = 0;          ///< in an idle epoch: as of plain_address()
  core::Bytes block = -1;            ///< gatherv, scatterv: of this rank's own block
  ExpectedArrival forecast;          ///< of the pattern that it ran on; the executor sets it
  core::Bytes all_blocks = -1;       ///< gatherv, scatterv, at the root: of all blocks
  /// The bytes of the call in this rank's counts of the site.
  core::Bytes bytes() const { return core::is_irregular(signature.op) ? all_blocks : signature.bytes; }
  Operands operands;
};

}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// The agreement rule (DESIGN section 3): what every rank of a communicator decides alike, from nothing but
// the sequence of collective calls, which MPI requires to be the same on all of them. No MPI here: the shim
// performs what these functions ask for.
//
// Timeline of one communicator, n counting its collective calls:
//   boundary B_k = 16, 32, 64, 128, 256, 384, ... (1024 apart while nothing was seen that depends on the leader)
//   - the first blocking call at or after B_k ends epoch k: every rank sends its log to the leader, and
//     the leader announces a plan, or that there is none (only in mode apply);
//   - the announcement is in force from the first blocking call at or after B_(k+1) that follows a blocking
//     call which depends on all ranks, or whose data come from the leader, and which began at or after the
//     announcement: the leader has then passed it, so whoever waits for the message waits for nobody.
//     It may say how many calls the epoch that it begins has, and let it rest: no rank logs it, and the next boundary
//     brings an announcement, but no logs;
//   - where the policy asks for plans of rooted calls (waits_for_leader), a boundary comes into force without such a
//   call
//     before it: ranks then wait for the leader, as they would in a collective that synchronises. The first of these
//     boundaries also agrees on the identity. The leader makes epochs so long that waiting stays a small part of the
//     time.
// Nothing happens inside non-blocking calls, and in mode observe no rank ever waits.
#pragma once

#include <cstdint>

#include "core/agreement/plan.hpp"
#include "core/algorithms/algorithm.hpp"
#include "core/policy/policy.hpp"

namespace latecomer::core {

/// U(n), the universal signature: what MPI guarantees to be equal on all ranks of call n.
struct Signature {
  Collective op = Collective::barrier;
  CallKind kind = CallKind::blocking;
  Rank root = -1;
  Bytes bytes = -1;  ///< -1: no size that every rank knows
  Elements count =
      0;  ///< reductions: elements; scatter, gather, bcast: bytes of a block, or of all; scatterv, gatherv: 1
  OpClass op_class = OpClass::none;
  bool exact = false;     ///< the result does not depend on the association, if there is one
  bool servable = false;  ///< our executor can run it: operator and datatype are a pair, the root is there
  std::uint64_t hash() const;
  bool operator==(const Signature&) const = default;
  /// There is something to move: known for certain, or known to nobody but the root.
  bool moves() const { return bytes > 0 || is_irregular(op); }
  /// An algorithm of ours may serve it.
  bool dispatchable() const { return kind == CallKind::blocking && moves() && servable && is_dispatched(op); }
};

/// The call that schedules are built and modelled for; not in place.
Call call_of(const Signature& signature, int ranks);

/// Whether a call is numbered. Persistent operations may be started in different orders on different
/// ranks (MPI 4.0, 6.13), so they are observed only.
constexpr bool counted(CallKind kind) { return kind != CallKind::persistent; }

/// The position in the sequence of one communicator, on one rank. Small: programs make thousands.
class Sequence {
 public:
  static constexpr Rank kLeader = 0;  ///< of the communicator
  static constexpr std::uint64_t kFirstBoundary = 16;
  static constexpr std::uint64_t kSteadyEpoch = 128;
  static constexpr std::uint64_t kRootedEpoch = 1024;

  struct Before {
    std::uint64_t n;          ///< this call's number
    bool identify = false;    ///< agree on the identity first, with one blocking collective, for which members wait
    bool hear = false;        ///< receive the outstanding announcement; it decides from this call on
    bool waits = false;       ///< the leader may not have passed: hear() waits for it
    bool ends_epoch = false;  ///< send the log; announces if `announce`
    bool announce = false;
  };

  /// Registers a counted call. `plans`: mode apply. `identified`: the communicator's identity is agreed.
  Before begin(const Signature& signature, bool plans, bool identified) {
    const Before out{n_++};
    if (out.n < boundary_ || signature.kind != CallKind::blocking || !(identified || waits_)) [[likely]]
      return out;
    return at_boundary(out, plans, identified);
  }

  /// From the coming call on boundaries may wait for the leader: said by all ranks at the same call, from what they all
  /// know of it.
  void allow_waits() { waits_ = true; }
  bool waits() const { return waits_; }

  /// After the call has returned. True: agree on the identity now, with one blocking collective; every
  /// rank is about to leave the same call, so nobody waits for the program.
  bool end(const Signature& signature, bool identified) {
    if (signature.kind != CallKind::blocking) return false;
    const bool all = depends_on_all(signature.op, signature.bytes);
    // What came from the leader itself shows as well that it has passed; but not that all are leaving the call.
    if (!all && !(signature.root == kLeader && depends_on_root(signature.op, signature.bytes))) return false;
    only_rooted_ = false;
    leader_passed_ = outstanding_;
    return all && !identified && n_ >= kFirstBoundary;
  }

  /// The epoch that the current call begins lasts for so many calls: said by the announcement that it has heard. 0: as
  /// ever.
  void lasts(std::uint64_t calls) {
    if (calls != 0) boundary_ = n_ - 1 + calls;
  }

  /// Whether end() would change nothing, whatever the call.
  bool settled() const { return !only_rooted_ && leader_passed_ == outstanding_; }
  /// So many calls have come and gone, none of which could be at a boundary, while settled.
  void pass(std::uint64_t calls) { n_ += calls; }

  std::uint64_t next_number() const { return n_; }
  /// An announcement has been made and has not come into force.
  bool awaits() const { return outstanding_; }
  std::uint64_t next_boundary() const { return boundary_; }

 private:
  Before at_boundary(Before out, bool plans, bool identified);
  std::uint64_t n_ = 0, boundary_ = kFirstBoundary;
  bool only_rooted_ = true, outstanding_ = false, leader_passed_ = false, waits_ = false;
};

/// What is decided for one call; equal on every rank.
struct Decision {
  const Algorithm* algorithm = nullptr;  ///< nullptr: native
  int segments = 0;
  bool overlap = true;
  int pattern = -1;   ///< index in the plan's patterns; -1: flat
  int sizes = -1;     ///< index in the plan's sizes; -1: none
  bool edge = false;  ///< a pattern of this call's own may take its place
  const Algorithm* unplanned =
      nullptr;                ///< asked for, but planning it takes more than is allowed there: the above runs instead
  std::int64_t planning = 0;  ///< messages that the plan takes: of `unplanned`, else of `algorithm`
};

/// Whether such a call asks for boundaries that wait: it is rooted, and the policy says `rooted_waits`, or a rule that
/// may match names an algorithm that needs a plan for its pattern or its sizes.
bool waits_for_leader(const Policy& policy, const Signature& signature, int comm_size);

/// Decides from the policy, U(n) and the plan's entry for n (nullptr: the plan says nothing of it; then the policy's
/// rules over universal keys decide, and a plan may take kPlannedInside messages). Deterministic in its arguments.
Decision decide(const Policy& policy, const Signature& signature, int comm_size, const PlanEntry* entry = nullptr);

/// What the entry of an announced plan asks for, if the call and the policy's `reproducible` allow it. Where planning
/// that takes more than kPlannedAhead messages, or kPlannedInside for a pattern of this call's own: prr instead, or
/// adaptive for blocks of different sizes, where they may serve the call; else native.
Decision decide_as(const Policy& policy, const Signature& signature, int comm_size, const PlanEntry& entry);

}  // namespace latecomer::core

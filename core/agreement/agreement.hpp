// SPDX-License-Identifier: BSD-3-Clause
// The agreement rule: the decisions that every rank of a communicator takes alike. Their inputs are equal on all ranks:
// the policy, the plan, and the sequence of collective calls, which MPI requires to be the same. Knows nothing of MPI:
// the shim performs the actions that these functions request. docs/explanation/agreement.md explains the rule.
//
// Timeline of one communicator; n counts its collective calls:
//   - Boundaries are at n = 16, 32, 64, 128, 256, 384, ...; 1024 apart while no call has depended on the leader. On
//     MPI_COMM_WORLD they begin at n = 4 where plans may come (begin_early).
//   - The first blocking call at or after boundary B_k ends epoch k. Every rank sends its log to the leader. In mode
//     apply, the leader announces a plan, or that no plan exists.
//   - At the exit of the first blocking call from B_(k+1) - 1 on that depends on all ranks, the ranks meet: each leaves
//     once all have the announcement. All of them are inside that call, so no rank waits for the program of another,
//     and each takes and sends messages until it leaves. The announcement is in force from the next blocking call on.
//   - An announcement may set the number of calls of the epoch that it begins. It may also make that epoch an idle
//     epoch: no rank logs it, and the next boundary brings an announcement but no logs.
//   - Where the policy asks for plans of rooted calls (waits_for_leader), the ranks meet at the entry of the boundary
//     instead. They then wait for each other, as in a collective that synchronizes. The first of these boundaries also
//     agrees on the identity. The leader makes epochs long enough to keep waiting a small part of the time.
// Non-blocking calls trigger no action. In mode observe no rank ever waits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/agreement/plan.hpp"
#include "core/algorithms/algorithm.hpp"
#include "core/policy/policy.hpp"

namespace latecomer::core {

/// U(n), the universal signature: the properties of call n that MPI guarantees to be equal on all ranks.
struct Signature {
  Collective op = Collective::barrier;
  CallKind kind = CallKind::blocking;
  Rank root = -1;
  Bytes bytes = -1;  ///< -1: no size is known on all ranks
  /// Reductions: elements. Scatter and gather: bytes of a block. Bcast: bytes of the vector. Scatterv and gatherv: 1.
  Elements count = 0;
  OpClass op_class = OpClass::none;
  bool exact = false;     ///< the association of operands does not change the result
  bool servable = false;  ///< the executor can run the call: operator and datatype fit, and the root is a member
  /// MPI refuses the call on all ranks at once: it has no such root, a negative count, or an operator that MPI does not
  /// define for the datatype.
  bool refused = false;
  std::uint64_t hash() const;
  bool operator==(const Signature&) const = default;
  /// The call may move data. Only the root knows the sizes of an irregular call.
  bool moves() const { return bytes > 0 || is_irregular(op); }
  /// An algorithm of the catalogue may serve the call.
  bool dispatchable() const { return kind == CallKind::blocking && moves() && servable && is_dispatched(op); }
};

/// The call for which schedules are built and simulated. It is never in place.
Call call_of(const Signature& signature, int ranks);

/// Whether a call gets a number. Ranks may start persistent operations in different orders (MPI 4.0, section 6.13), so
/// latecomer only observes these. A call that MPI refuses on all ranks depends on nobody, so it proves nothing.
constexpr bool is_counted(const Signature& s) { return s.kind != CallKind::persistent && !s.refused; }

/// One rank's position in the sequence of calls of one communicator. Small, because programs create thousands of
/// communicators.
class Sequence {
 public:
  static constexpr Rank kLeader = 0;  ///< rank in the communicator
  // Lengths in calls.
  /// Derived: twice the measured calls of a verdict (kEnoughMeasured), so that the first log of one or two sites is
  /// sufficient. A communicator with fewer calls sends no logs.
  static constexpr std::uint64_t kFirstBoundary = 16;
  /// The first boundary of MPI_COMM_WORLD, and the shortest epoch that a leader announces. Derived: a boundary costs 50
  /// us, 1% of four calls of 1.25 ms. A shorter epoch brings fewer calls than a rota has turns.
  static constexpr std::uint64_t kShortestEpoch = 4;
  /// Distance of boundaries from n = 128 on. Derived from memory: a communicator's log of an epoch
  /// takes 6 KiB. Derived from planning: a plan inside a call (1 ms, kPlannedInside) costs each of 128 calls 8 us.
  /// A shorter epoch reacts sooner, and exchanges more messages.
  static constexpr std::uint64_t kSteadyEpoch = 128;
  /// Distance of boundaries while no call has depended on the leader, so that no plan can come into force. Also the
  /// greatest length of a log. Derived from memory: a log takes 48 KiB. Later calls of the epoch have no patterns.
  static constexpr std::uint64_t kRootedEpoch = 1024;

  struct Before {
    std::uint64_t n;          ///< number of this call
    bool identify = false;    ///< agree on the identity before the call, with one blocking collective of all members
    bool hear = false;        ///< receive the outstanding announcement, which decides from this call on
    bool waits = false;       ///< the ranks have not met: they meet before the call, and may wait for each other there
    bool ends_epoch = false;  ///< send the log to the leader
    bool announce = false;    ///< the leader announces a plan, or that no plan exists
  };

  /// Registers a counted call, before it. `plans`: the mode is apply. `identified`: the ranks have agreed on the
  /// communicator's identity.
  Before begin_call(const Signature& signature, bool plans, bool identified) {
    const bool blocks = signature.kind == CallKind::blocking;
    const Before out{n_++};
    if (blocks) {
      // Data from the leader prove that the leader has announced, but not that all ranks have arrived in the call.
      open_ = depends_on_all(signature.op, signature.bytes)                                 ? Open::all
              : signature.root == kLeader && depends_on_root(signature.op, signature.bytes) ? Open::leader
                                                                                            : Open::nothing;
    }
    if (out.n < boundary_ || !blocks || !(identified || waits_)) [[likely]]
      return out;
    return at_boundary(out, plans, identified);
  }

  /// Allows boundaries to wait for the leader, from the next call on. All ranks must call this function before the same
  /// call, so their reason may depend only on the universal signature.
  void allow_waits() { waits_ = true; }
  bool may_wait() const { return waits_; }

  /// The actions of all ranks before they leave a call. All ranks are inside the same call then, so no rank waits for
  /// the program of another.
  struct After {
    bool identify = false;  ///< agree on the identity, with one blocking collective
    bool meet = false;      ///< leave once all ranks have the outstanding announcement
  };

  /// Registers the return of a call. A second call of this function does nothing. So call it before begin_call(), too:
  /// an error handler may take one rank out of a call by a jump, while the other ranks return from it normally.
  After end_call(bool identified) {
    const Open open = std::exchange(open_, Open::nothing);
    if (open == Open::nothing) [[likely]]
      return {};
    only_rooted_ = false;
    if (open != Open::all) return {};
    const bool meet = outstanding_ && !met_ && n_ >= boundary_;
    met_ = met_ || meet;
    return {!identified && n_ >= kFirstBoundary, meet};
  }

  /// Sets the length of the epoch that the current call begins, as its announcement says. 0: the default length.
  void set_epoch_length(std::uint64_t calls) {
    if (calls == 0) return;
    boundary_ = n_ - 1 + std::max<std::uint64_t>(calls, 2);
    brief_ = calls <= kFirstBoundary;
  }

  /// Moves the first boundary to kShortestEpoch. For a communicator whose ranks know its identity before its first
  /// call. All ranks call this function, before the first call.
  void begin_early() {
    boundary_ = kShortestEpoch;
    brief_ = true;
  }
  /// Whether the epoch is so short that a rank should look for an announcement after every call.
  bool has_brief_epoch() const { return brief_; }

  /// Whether end_call() changes no state, for any call before the last one of the epoch.
  bool settled() const { return !only_rooted_; }
  /// Registers `calls` calls at once. Requires settled(), and that neither a boundary nor the call before it is among
  /// these calls.
  void pass_calls(std::uint64_t calls) { n_ += calls; }

  std::uint64_t next_number() const { return n_; }
  /// The number of epochs that have ended.
  std::uint64_t epochs_ended() const { return epochs_; }
  /// Whether an announcement is outstanding: sent by the leader, and not yet in force.
  bool awaits_announcement() const { return outstanding_; }
  std::uint64_t next_boundary() const { return boundary_; }

 private:
  /// The ranks that have reached the current call, as far as its return proves: no rank, the leader, or all.
  enum class Open : std::uint8_t { nothing, leader, all };

  Before at_boundary(Before out, bool plans, bool identified);
  std::uint64_t n_ = 0, boundary_ = kFirstBoundary;
  std::uint64_t began_ = 0;   ///< number of the first call of this epoch
  std::uint64_t epochs_ = 0;  ///< that have ended
  bool only_rooted_ = true, outstanding_ = false, waits_ = false, brief_ = false;
  bool met_ = false;  ///< all ranks have the outstanding announcement
  Open open_ = Open::nothing;
};

/// The decision for one call, which is equal on every rank.
struct Decision {
  const Algorithm* algorithm = nullptr;  ///< nullptr: native
  int segments = 0;
  bool overlap = true;
  int pattern = -1;                      ///< index in the plan's patterns; -1: flat
  int sizes = -1;                        ///< index in the plan's sizes; -1: none
  bool edge = false;                     ///< the ranks may exchange a pattern for this call, which replaces `pattern`
  const Algorithm* unplanned = nullptr;  ///< the requested algorithm if its planning takes too long
  std::int64_t planning = 0;             ///< planning effort in messages, of `unplanned` or else of `algorithm`
};

/// Whether the call lets boundaries wait for the leader. True for a rooted call if the policy sets `rooted_waits`. By
/// default, true if a rule that may match names an algorithm that needs a plan for its pattern or its sizes.
bool waits_for_leader(const Policy& policy, const Signature& signature, int comm_size);

/// Decides from the policy and U(n), for a call without an entry of a plan: the policy's rules over universal keys
/// decide, and planning may take kPlannedInside messages. The result depends on the arguments only.
Decision decide_call(const Policy& policy, const Signature& signature, int comm_size);

/// The algorithm of an announced plan's entry, if the call and the policy's `reproducible` allow it. The stand-in of
/// the collective replaces an algorithm whose planning takes more than kPlannedAhead messages: prr for allreduce,
/// adaptive for gatherv and scatterv. Native replaces a stand-in that may not serve the call. If planning takes more
/// than kPlannedInside messages, the ranks exchange no pattern for the call.
Decision decide_planned_call(const Policy& policy, const Signature& signature, int comm_size, const PlanEntry& entry);

}  // namespace latecomer::core

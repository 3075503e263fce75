// SPDX-License-Identifier: BSD-3-Clause
// A member of a communicator: one rank's part in the agreement. Before and after each counted call, it returns the next
// steps of the rank. It takes the announcements and holds the plan in force. It knows no MPI: the shim takes the steps,
// and the simulations drive the same class.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "core/agreement/agreement.hpp"
#include "core/agreement/plan.hpp"
#include "core/policy/policy.hpp"

namespace latecomer::core {

class AgreementMember {
 public:
  /// The steps before a counted call. Call steps_after() first: an error handler may have left the call before by a
  /// jump. `plans`: announcements may come. `may_wait`: rooted calls may ask for boundaries at which ranks wait.
  Sequence::Before steps_before(const Signature& signature, int comm_size, const Policy& policy, bool may_wait,
                                bool plans, bool identified) {
    if (may_wait && is_rooted(signature.op) && !sequence_.may_wait() && waits_for_leader(policy, signature, comm_size))
        [[unlikely]]
      sequence_.allow_waits();
    return sequence_.begin_call(signature, plans, identified);
  }
  /// The steps that all members take together before they leave the call.
  Sequence::After steps_after(bool identified) { return sequence_.end_call(identified); }

  /// Whether to look for an announcement after call n: after every eighth call, and after every call of a short epoch.
  bool looks_after(std::uint64_t n) const {
    return ((n & 7) == 4 || sequence_.has_brief_epoch()) && sequence_.awaits_announcement() && !heard_;
  }
  /// Keeps an announcement until its call. All members get equal bytes, so bytes that are no announcement count as "no
  /// plan". If this function throws std::bad_alloc, nothing has changed.
  void take_announcement(std::span<const char> bytes, int comm_size) {
    auto heard = std::make_unique<Announcement>();
    if (!Announcement::deserialize(bytes, comm_size, *heard)) *heard = {};
    heard_ = std::move(heard);
  }
  /// The announcement that is not yet in force, or nullptr.
  const Announcement* next_announcement() const { return heard_.get(); }
  /// Puts it in force, from the current call on. Returns whether another plan decides now. If it throws std::bad_alloc,
  /// nothing has changed.
  bool put_in_force() {
    using Kind = Announcement::Kind;
    const bool other = heard_->kind == Kind::plan || (heard_->kind == Kind::none && !plan_.plan().empty());
    if (other) plan_.install(std::move(heard_->plan));
    sequence_.set_epoch_length(heard_->epoch);
    resting_ = heard_->rest && heard_->kind == Kind::none;
    heard_.reset();
    return other;
  }
  /// Begins with the plan of an earlier run. All members call it before the first call.
  void begin_with_plan(const Plan& plan) { plan_.install(plan); }

  /// The plan's entry for call n, or nullptr. Call it for every counted call, in order.
  const PlanEntry* find_entry(std::uint64_t n, std::uint64_t signature) { return plan_.at(n, signature); }
  const PlanInForce& in_force() const { return plan_; }
  const Plan& plan() const { return plan_.plan(); }
  /// The epoch is idle: nothing is logged, and no plan is in force. Where announcements come, on all members.
  bool rests() const { return resting_; }
  /// In mode observe, where no announcement comes: whether this rank logs the epoch that begins.
  void begin_alone(bool logged) { resting_ = !logged; }
  const Sequence& sequence() const { return sequence_; }
  void begin_early() { sequence_.begin_early(); }
  void pass_calls(std::uint64_t calls) { sequence_.pass_calls(calls); }

 private:
  Sequence sequence_;
  PlanInForce plan_;
  std::unique_ptr<Announcement> heard_;
  bool resting_ = false;
};

}  // namespace latecomer::core

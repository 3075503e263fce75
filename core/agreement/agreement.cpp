// SPDX-License-Identifier: BSD-3-Clause
// Implements epochs, announcements and decisions as functions of the sequence of calls.
#include "core/agreement/agreement.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "core/select/planning.hpp"

namespace latecomer::core {

std::uint64_t Signature::hash() const {
  std::uint64_t h = mix64(static_cast<std::uint64_t>(op) | static_cast<std::uint64_t>(kind) << 8 |
                          static_cast<std::uint64_t>(op_class) << 16);
  h = mix64(h ^ static_cast<std::uint64_t>(static_cast<std::int64_t>(root)));
  h = mix64(h ^ static_cast<std::uint64_t>(bytes));
  return mix64(h ^ static_cast<std::uint64_t>(count));
}

Call call_of(const Signature& s, int ranks) {
  Call call;
  call.op = s.op;
  call.ranks = ranks;
  call.root = std::max(s.root, 0);
  call.count = s.count;
  // Models need a positive element size, also for calls whose size is unknown.
  call.element_bytes = is_reduction(s.op) ? std::max<Bytes>(1, s.bytes / std::max<Elements>(1, s.count)) : 1;
  call.commutative = s.op_class != OpClass::user_noncommutative;
  return call;
}

static_assert(Sequence::kSteadyEpoch == kCallsOfPlan);

Sequence::Before Sequence::at_boundary(Before out, bool plans, bool identified) {
  out.identify = !identified;
  if (outstanding_) {
    // An announcement is due. It comes into force if the ranks have met, or if they may wait for each other. Until then
    // the boundary stays, so at most one announcement is outstanding. Logs go up without it after kRootedEpoch calls.
    if (met_ || waits_) {
      out.hear = true;
      out.waits = !met_;
      outstanding_ = false;
    } else if (out.n - began_ < kRootedEpoch) {
      return out;
    }
  }
  out.ends_epoch = true;
  ++epochs_;
  out.announce = plans && !outstanding_;
  if (out.announce) {
    outstanding_ = true;
    met_ = false;
  }
  began_ = out.n;
  const std::uint64_t step = out.n < kSteadyEpoch ? boundary_ : (only_rooted_ && !waits_ ? kRootedEpoch : kSteadyEpoch);
  boundary_ = std::max(boundary_ + step, out.n + 1);
  brief_ = boundary_ - out.n <= kFirstBoundary;
  return out;
}

namespace {

/// Whether the policy lets an algorithm of the catalogue serve the call.
bool dispatches(const Policy& policy, const Signature& s, int comm_size) {
  return policy.mode == Mode::apply && comm_size >= 2 && s.dispatchable();
}

/// Whether the operator and the policy's `reproducible` allow this algorithm for the call.
bool permits(const Policy& policy, const Signature& s, const Algorithm& algorithm) {
  if (s.op_class == OpClass::user_noncommutative && !algorithm.keeps_rank_order()) return false;
  // The test core.schedule checks pattern_independent() against the verifier's fingerprint of the association.
  return s.exact || policy.reproducible == Reproducible::any ||
         (policy.reproducible == Reproducible::run && algorithm.pattern_independent());
}

Decision decide_within(const Policy& policy, const Signature& s, int comm_size, const PlanEntry& entry,
                       std::int64_t most) {
  Decision out;
  if (!dispatches(policy, s, comm_size)) return out;
  if (entry.algorithm < 0 || entry.algorithm >= static_cast<std::int32_t>(catalogue().size())) return out;
  const Algorithm& algorithm = algorithm_at(entry.algorithm);
  if (algorithm.op != s.op || (algorithm.needs_sizes && entry.sizes < 0) || !permits(policy, s, algorithm)) return out;
  const bool edge = entry.edge != 0;
  if (algorithm.planning == Planning::none)
    return {&algorithm, entry.segments, entry.overlap != 0, entry.pattern, entry.sizes, edge};
  const Call call = call_of(s, comm_size);
  const Fitting fitting = fit_to(algorithm, call, entry.segments, policy.network, most);
  // Ranks plan for an exchanged pattern inside the call, where a smaller limit holds.
  if (fitting.fits)
    return {&algorithm,    fitting.segments, entry.overlap != 0,
            entry.pattern, entry.sizes,      edge && fitting.messages <= kPlannedInside,
            nullptr,       fitting.messages};
  const Algorithm* other = stand_in_for(s.op);
  const Fitting its = other ? fit_to(*other, call, 0, policy.network, most) : Fitting{};
  if (other && (!permits(policy, s, *other) || !its.fits)) other = nullptr;
  out = {other, 0, entry.overlap != 0, other ? entry.pattern : -1, -1, other && edge && its.messages <= kPlannedInside};
  out.unplanned = &algorithm;
  out.planning = fitting.messages;
  return out;
}

}  // namespace

bool waits_for_leader(const Policy& policy, const Signature& s, int comm_size) {
  if (!is_rooted(s.op) || !dispatches(policy, s, comm_size)) return false;
  if (policy.rooted_waits) return *policy.rooted_waits;
  const CallProperties facts{s.op, s.bytes, comm_size, s.root, s.op_class};
  for (const Rule& rule : policy.rules) {
    if (!may_match(rule.match, facts)) continue;
    const Algorithm* a = rule.use.kind == Use::Kind::algorithm ? find_algorithm(s.op, rule.use.algorithm) : nullptr;
    if (a && (is_irregular(s.op) ? a->needs_sizes : a->uses_pattern())) return true;
    if (rule.match.universal()) return false;  // this rule decides the call, and needs no plan
  }
  return false;
}

Decision decide_planned_call(const Policy& policy, const Signature& s, int comm_size, const PlanEntry& entry) {
  return decide_within(policy, s, comm_size, entry, kPlannedAhead);
}

Decision decide_call(const Policy& policy, const Signature& s, int comm_size) {
  if (!dispatches(policy, s, comm_size)) return {};
  const Rule* rule = first_match(policy, {s.op, s.bytes, comm_size, s.root, s.op_class});
  if (!rule || rule->use.kind != Use::Kind::algorithm) return {};
  const Algorithm* algorithm = find_algorithm(s.op, rule->use.algorithm);
  if (!algorithm) return {};
  PlanEntry alone;
  alone.algorithm = index_of(algorithm);
  alone.segments = rule->use.segments;
  alone.overlap = rule->use.overlap;
  return decide_within(policy, s, comm_size, alone, kPlannedInside);
}

}  // namespace latecomer::core

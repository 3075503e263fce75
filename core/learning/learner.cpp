// SPDX-License-Identifier: BSD-3-Clause
// The announcements of the leader, and its results.
#include "core/learning/learner.hpp"

#include <algorithm>

#include "core/learning/decide.hpp"
#include "core/learning/forecast.hpp"
#include "core/learning/plan_writer.hpp"

namespace latecomer::core {
namespace {

/// The winner of `auto` at a slot, with the times that this run or else the earlier one measured.
Learned learn_winner(const ServedSlot& served, Objective objective) {
  const Slot& slot = *served.slot;
  Learned out;
  out.signature = slot.hash;
  out.site = slot.site;
  out.calls = slot.calls;
  out.algorithm = served.algorithm;
  out.segments = served.segments;
  out.overlap = served.overlap;
  if (!ignores_arrivals(slot)) out.pattern = slot.arrivals.forecast.offsets;
  else if (slot.reason == Reason::remembered && slot.earlier) out.pattern = slot.earlier->pattern;
  out.sizes.assign(served.sizes.begin(), served.sizes.end());
  const Samples* its = &slot.current;
  for (const Runner& r : slot.rota.runners)
    if (r.algorithm == served.algorithm) its = &r.measured;
  const Learned* before = slot.earlier && slot.earlier->algorithm == out.algorithm ? &*slot.earlier : nullptr;
  out.measured_ns = its->enough() ? its->median(objective) : before ? before->measured_ns : -1;
  out.native_measured_ns = slot.native.enough() ? slot.native.median(objective)
                           : before             ? before->native_measured_ns
                                                : -1;
  return out;
}

}  // namespace

Learner::Learner(const Policy& policy, int ranks, SiteMatch site_matches, std::vector<int> hosts, std::size_t memory)
    : terms_{policy, ranks, std::move(hosts), std::move(site_matches)}, table_(terms_, memory), epochs_(ranks) {}

void Learner::record_call(const CallSeen& call) {
  divergent_ = divergent_ || call.divergent;
  table_.record_call(call);
}

Announcement Learner::make_announcement(std::uint64_t n, bool dropped, Nanoseconds now, bool hurried) {
  Announcement out;
  epochs_.begin_announcement(n, now);
  modeller_.renew_budget();
  if (quiet_ && (hurried || table_.next() == looked_at_)) {  // no algorithm is in use, and no new call was seen
    epochs_.set_epoch(out, quiet_, {});
    return out;
  }
  if (hurried) {
    out.kind = announced_.empty() ? Announcement::Kind::none : Announcement::Kind::keep;
    return out;
  }
  looked_at_ = table_.next();
  table_.find_period();
  const auto slots = table_.slots();
  mark_shared_sizes(slots, table_.period() != 0);
  for (Slot* slot : slots) {
    if (slot->calls == slot->decided_at && slot->reason != Reason::no_budget) continue;  // no new call
    slot->decided_at = slot->calls;
    decide_slot(terms_, modeller_, *slot);
  }
  // A plan is announced only if it differs from the decisions that every rank takes without a plan.
  PlanWriter writer(terms_, table_);
  if (terms_.policy.decides_alone() ||
      std::ranges::any_of(slots, [](const Slot* slot) { return slot->algorithm >= 0 || slot->rota.running(); })) {
    std::vector<ServedSlot> all;
    for (const Slot* slot : slots) all.push_back(serve_decided(*slot));
    writer.add_slots(all);
  }
  writer.add_unseen(before_);
  if (writer.says_anything) out.plan = std::move(writer.plan);
  out.kind = out.plan.empty()                     ? Announcement::Kind::none
             : out.plan == announced_ && !dropped ? Announcement::Kind::keep
                                                  : Announcement::Kind::plan;
  if (out.kind == Announcement::Kind::plan) announced_ = out.plan;
  else if (out.kind == Announcement::Kind::none) announced_ = {};
  // If ranks call from different sites, the profile needs the log of every call.
  quiet_ = terms_.policy.rest && !terms_.policy.record_arrivals && out.kind == Announcement::Kind::none &&
           !slots.empty() && !divergent_ &&
           std::ranges::all_of(slots, [](const Slot* slot) { return is_quiet(*slot); });
  epochs_.set_epoch(out, quiet_, slots);
  return out;
}

void Learner::put_in_force(std::uint64_t n) {
  for (Slot* slot : table_.slots()) {
    if (!slot->changed) continue;
    slot->changed = false;
    slot->counts_from = std::min(slot->counts_from, n);
    if (slot->rota.running()) slot->rota.counts_from = std::min(slot->rota.counts_from, n);
  }
}

std::vector<SlotReport> Learner::reports() const {
  std::vector<SlotReport> out;
  for (const Slot* slot : table_.slots()) out.push_back(report_slot(terms_, *slot));
  return out;
}

Learner::Outcome Learner::outcome() const {
  Outcome out;
  std::vector<ServedSlot> all;
  for (const Slot* slot : table_.slots()) {
    const char* words = "";
    const ServedSlot& served = all.emplace_back(serve_later_run(terms_, *slot, words));
    SlotReport& report = out.reports.emplace_back(report_slot(terms_, *slot));
    report.algorithm = served.algorithm;
    report.reason += words;
    if (served.algorithm >= 0 && slot->rule && slot->rule->use.kind == Use::Kind::automatic)
      out.learned.push_back(learn_winner(served, terms_.policy.objective));
  }
  // Call sites that this run has not reached keep the winners of the earlier run.
  if (all.empty()) {
    out.plan = before_;
    out.says_anything = !before_.empty();
    return out;
  }
  PlanWriter writer(terms_, table_);
  writer.add_slots(all);
  writer.add_unseen(before_);
  out.plan = std::move(writer.plan);
  out.says_anything = writer.says_anything;
  return out;
}

}  // namespace latecomer::core

// SPDX-License-Identifier: BSD-3-Clause
// The leader of a communicator: takes logs, and announces plans.
#include <algorithm>

#include "shim/dispatch/engine/engine.hpp"
#include "shim/dispatch/exchange/messages.hpp"
#include "shim/dispatch/executor/executor.hpp"
#include "shim/dispatch/learned.hpp"
#include "shim/log.hpp"
#include "shim/sites/names.hpp"

namespace latecomer::shim {

using namespace exchange;

namespace {

/// Adds one call to the profile and the learner. `records`: of all ranks. `signature`: nullptr if the leader does not
/// have it.
void digest(CommState& state, const std::vector<const profiles::CallRecord*>& records, std::uint64_t n,
            const core::Signature* signature) {
  Job& j = job();
  Leadership& lead = *state.leadership;
  bool divergent = false;
  // Each of two ranks may err by its own uncertainty.
  const Nanoseconds tie =
      j.clocks.domains == 1 ? 0 : 2 * *std::max_element(lead.uncertainty.begin(), lead.uncertainty.end());
  {
    const JobLock lock;
    divergent = j.mine.patterns.add(records, state.world, tie, j.policy.network_given ? &j.policy.network : nullptr);
  }
  if (!lead.learner || !signature || state.broken) return;
  core::CallSeen call;
  call.n = n;
  call.signature = *signature;
  call.site = records[static_cast<std::size_t>(std::max(signature->root, 0))]->site;
  call.divergent = divergent;
  call.algorithm = static_cast<int>(records[0]->algorithm) - 1;
  Nanoseconds first = INT64_MAX, last = INT64_MIN, exit = 0;
  bool complete = true;
  std::size_t said = 0;
  double elapsed = 0;
  for (const auto* r : records) {
    first = std::min(first, r->arrival), last = std::max(last, r->arrival);
    exit = std::max(exit, r->exit), complete = complete && r->exit != 0;
    said += (r->edge & profiles::kSaid) != 0;
    elapsed += static_cast<double>(r->exit - r->arrival);
  }
  call.edge = 2 * said >= records.size();
  for (std::size_t i = 0; i < records.size(); ++i) lead.offsets[i] = records[i]->arrival - first;
  call.offsets = lead.offsets;
  call.imbalance = last - first, call.arrived = last;
  call.last = core::last_rank([&](std::size_t i) { return lead.offsets[i]; }, 0, call.imbalance, tie);
  if (core::is_irregular(signature->op)) {
    lead.sizes.clear();
    for (const auto* r : records)
      if (r->bytes >= 0) lead.sizes.push_back(r->bytes);
    if (lead.sizes.size() == records.size()) call.sizes = lead.sizes;
  }
  if (complete)
    call.after_last = std::max<Nanoseconds>(exit - last, 0),
    call.mean_elapsed = elapsed / static_cast<double>(records.size());
  lead.learner->see(call);
}

}  // namespace

void lead(CommState& state) {
  Job& j = job();
  auto leadership = std::make_unique<Leadership>(state.size);
  const int size = state.size;
  if (j.announces)
    leadership->learner = std::make_unique<core::Learner>(
        j.policy, size,
        [size](std::uint64_t site, core::Collective op, const std::string& glob) {
          return site_is({site, op, size}, glob);
        },
        // Without figures for memory, the model counts each rank as a host.
        j.policy.network.memory_beta_ns_per_byte > 0 ? j.hosts_of(state.world) : std::vector<int>{});
  if (leadership->learner && engine_runs()) leadership->learner->allow_edges();
  if (leadership->learner && state.context == kWorldContext)
    leadership->learner->remember(
        [size](std::uint64_t site, core::Collective op) -> const std::vector<Nanoseconds>* {
          const auto found = job().history.offsets.find(profiles::SiteKey{site, op, size}.id());
          return found == job().history.offsets.end() ? nullptr : &found->second;
        },
        [size](std::uint64_t site, const core::Signature& signature) {
          return job().history.winner_of(profiles::SiteKey{site, signature.op, size}.id(), signature);
        },
        state.plan.plan());
  const JobLock lock;  // another thread may be writing a snapshot of all communicators
  state.leadership = std::move(leadership);
}

void note_decisions(CommState& state) {
  if (!state.leadership || !state.leadership->learner || state.broken) return;
  Leadership& lead = *state.leadership;
  const Nanoseconds begin = now();
  lead.reports = lead.learner->reports();
  std::vector<std::string> texts;
  for (const auto& report : lead.reports)
    if (report.signature.kind == core::CallKind::blocking) texts.push_back(profiles::decision_json(report, state.size));
  std::string plan;
  if (lead.latest) {
    plan = profiles::plan_json(state.identity, state.size, lead.latest->first, lead.latest->second, lead.reports);
    lead.latest_hash = lead.latest->second.hash();
  }
  lead.latest.reset();
  const JobLock lock;
  lead.decisions = std::move(texts);
  if (!plan.empty()) job().keep_plan(std::move(plan));
  lead.words_next = now() + kPauseAfterWriting * (now() - begin);
}

void note_outcome(CommState& state) {
  note_decisions(state);
  if (!state.leadership || !state.leadership->learner || state.broken) return;
  Leadership& lead = *state.leadership;
  const core::Learner::Outcome outcome = lead.learner->outcome();
  if (state.identity == profiles::kWorldIdentity) note_learned(outcome);
  if (outcome.plan.hash() == lead.latest_hash || (lead.latest_hash == 0 && !outcome.says_anything)) return;
  std::string plan = profiles::plan_json(state.identity, state.size, lead.announced_at, outcome.plan, outcome.reports);
  const JobLock lock;
  job().keep_plan(std::move(plan));
}

void collect(CommState& state) {
  if (!state.leadership || !state.usable()) return;
  Leadership& lead = *state.leadership;
  while (!lead.members[0].empty()) {  // the other logs are matched with the leader's own, which comes first
    bool all = true;
    std::uint64_t newest = 0;
    for (std::size_t r = 0; r < lead.members.size(); ++r) {
      Header header;
      MemberLogs& logs = lead.members[r];
      if (r != 0 && logs.empty() &&
          take(state.world[r], tag_of(state.context, kLogChannel), state.identity, header, lead.body)) {
        auto& part = logs.push();
        part.first = header.first;
        lead.uncertainty[r] = header.uncertainty;
        lead.waited += header.waited;
        records_in(header, lead.body, part.records);
      }
      all = all && !logs.empty();
      if (!logs.empty()) newest = std::max(newest, logs.front().first);
    }
    if (!all) return;
    bool level = true;
    std::size_t count = SIZE_MAX;
    for (MemberLogs& logs : lead.members) {
      if (logs.front().first < newest) logs.pop(), level = false;  // the others' part was lost
      else count = std::min(count, logs.front().records.size());
    }
    if (!level) continue;
    for (std::size_t i = 0; i < count; ++i) {
      bool same = true;
      for (std::size_t r = 0; r < lead.members.size(); ++r) {
        lead.row[r] = &lead.members[r].front().records[i];
        same = same && lead.row[r]->op == lead.row[0]->op;
      }
      const auto& own = lead.members[0].front();
      const std::size_t before = own.records.size() - std::min(own.signatures.size(), own.records.size());
      if (same) digest(state, lead.row, newest + i, i >= before ? &own.signatures[i - before] : nullptr);
    }
    for (MemberLogs& logs : lead.members) logs.pop();
  }
}

void announce(CommState& state, std::uint64_t n) {
  if (state.rank != 0 || !state.usable()) return;
  Job& j = job();
  Leadership& lead = *state.leadership;
  lead.announced = {}, lead.announced_at = n;
  // The budget of learning: 20 ms once, and 2% of the time since the start. It matters in programs with hundreds of
  // slots and calls of a few microseconds. Beyond, the learner announces "as before" without a look at the logs.
  constexpr Nanoseconds kSpentAtFirst = 20'000'000, kPartOfTime = 50;
  const Nanoseconds begin = now();
  if (state.sequence.waits() && lead.learner) lead.learner->waited(lead.waited / state.size), lead.waited = 0;
  using Kind = core::Learner::Announcement::Kind;
  std::vector<char> bytes;
  try {
    if (!state.broken)
      lead.announced = lead.learner->announce(n, state.plan.dropped(), begin,
                                              j.learning > kSpentAtFirst + (begin - j.started) / kPartOfTime);
    if (lead.announced.kind == Kind::plan) bytes = lead.announced.plan.serialize();
    // The leader must not use a plan that the members cannot read.
    if (core::Plan read; lead.announced.kind == Kind::plan && !core::Plan::deserialize(bytes, state.size, read))
      lead.announced = {}, bytes.clear();
  } catch (const std::bad_alloc&) {
    state.broken = true;
    lead.announced = {}, bytes.clear();  // the members wait for an announcement, so there is always one
  }
  const bool plan = lead.announced.kind == Kind::plan;
  const Header header{state.identity,
                      n,
                      static_cast<std::uint32_t>(lead.announced.kind),
                      0,
                      state.size,
                      lead.announced.rest,
                      lead.announced.epoch,
                      0,
                      0};
  for (Rank r = 1; r < state.size; ++r)
    with_reserve([&] {
      return post(state.world[static_cast<std::size_t>(r)], tag_of(state.context, kPlanChannel), header, bytes.data(),
                  bytes.size(), false);
    });
  if (lead.learner && !lead.learner->modelled()) j.learning += now() - begin;
  // Make the texts after the messages, for which members may wait. The first 16 plans of a process get texts at once,
  // so that the profile of a short job has them. Later plans wait for words_next: a plan that the next one replaces
  // before that time is not in the profile. A larger number costs more time at boundaries, a smaller one omits more
  // plans.
  constexpr std::size_t kPlansAtOnce = 16;
  try {
    if (plan) lead.latest = {n, lead.announced.plan};
    const bool at_once = plan && [&] {
      const JobLock lock;  // leaders of other communicators add plans
      return j.mine.plans.size() < kPlansAtOnce;
    }();
    if (at_once || now() >= lead.words_next) note_decisions(state);
  } catch (const std::bad_alloc&) {
    state.broken = true;
  }
  if (!plan) return;
  int dispatched = 0;
  for (const core::PlanEntry& e : lead.announced.plan.entries) dispatched += e.algorithm >= 0;
  say(2, "plan announced at call %llu of a communicator of %d: %zu %s, %d of them not native, %zu patterns",
      static_cast<unsigned long long>(n), state.size, lead.announced.plan.entries.size(),
      lead.announced.plan.period ? "slots" : "entries", dispatched, lead.announced.plan.patterns.size());
}

}  // namespace latecomer::shim

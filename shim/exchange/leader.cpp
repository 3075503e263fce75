// SPDX-License-Identifier: BSD-3-Clause
// The leader of a communicator: takes logs, and announces plans.
#include <algorithm>

#include "profiles/format/decisions.hpp"
#include "shim/engine/engine.hpp"
#include "shim/exchange/branch.hpp"
#include "shim/executor/executor.hpp"
#include "shim/log.hpp"
#include "shim/sites/names.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/earlier_run.hpp"
#include "shim/state/process.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/shared.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {

namespace {
std::atomic<Nanoseconds> learning{0};  // processor time of announcements that modelled nothing
/// The budget of texts is 0.05% of the time: a pause of 2,000 times the duration of a write follows it.
constexpr Nanoseconds kPauseAfterWriting = 2000;

/// Keeps what the leader of MPI_COMM_WORLD has learned for the profile, and for the file of the policy key `learn`.
void note_learned(const core::Learner::Outcome& outcome) {
  const auto setup = profiles::setup_of(JobLock()->mine.job, job_world().hosts);
  std::string text = profiles::learned_json(setup, outcome.learned, outcome.reports, earlier_run().history);
  const JobLock lock;
  lock->mine.learned = std::move(text);
}

}  // namespace

void learn_from_call(Leadership& lead, std::uint64_t n, const profiles::CallDigest& digest,
                     const profiles::CallFacts& facts, const profiles::CallSampled& sampled) {
  if (!lead.learner) return;
  const LearnerLock lock(lead);
  while (!lead.waiting.empty() && lead.waiting.front().first + lead.waiting.front().second.size() <= n) {
    lead.spare.swap(lead.waiting.front().second);
    lead.waiting.erase(lead.waiting.begin());
  }
  if (lead.waiting.empty() || n < lead.waiting.front().first) return;
  core::CallSeen call;
  call.n = n;
  call.signature = lead.waiting.front().second[n - lead.waiting.front().first];
  call.site = digest.site;
  call.divergent = digest.divergent;
  call.algorithm = static_cast<int>(digest.algorithm) - 1;
  call.edge = 2 * digest.said >= digest.ranks;
  call.imbalance = digest.last - digest.first;
  call.arrived = digest.last;
  call.last = facts.latest;
  lead.offsets.clear();
  for (const Nanoseconds arrival : sampled.arrivals) lead.offsets.push_back(arrival - digest.first);
  call.offsets = lead.offsets;
  if (!sampled.blocks.empty() && std::ranges::min(sampled.blocks) >= 0) call.sizes = sampled.blocks;
  if (digest.complete) {
    call.after_last = std::max<Nanoseconds>(digest.exit - digest.last, 0);
    call.mean_elapsed = static_cast<double>(digest.elapsed) / digest.ranks;
  }
  lead.learner->record_call(call);
}

void become_leader(CommState& state) {
  auto leadership = std::make_unique<Leadership>();
  const int size = state.size;
  if (job_rules().announces)
    leadership->learner = std::make_unique<core::Learner>(
        job_rules().policy, size,
        [size, &naming = leadership->naming](std::uint64_t site, core::Collective op, const std::string& glob) {
          const Nanoseconds begin = thread_time();
          const bool is = site_is({site, op, size}, glob);
          naming += thread_time() - begin;
          return is;
        },
        // Without figures for memory, the model counts each rank as a host.
        job_rules().policy.network.memory_beta_ns_per_byte > 0 ? job_world().hosts_of(state.world)
                                                               : std::vector<int>{});
  if (leadership->learner && engine_runs()) leadership->learner->allow_edges();
  if (leadership->learner && state.context == kWorldContext)
    leadership->learner->remember_run(
        [size](std::uint64_t site, const core::Signature& signature) {
          return earlier_run().history.winner_of(profiles::SiteKey{site, signature.op, size}.id(), signature);
        },
        state.member.plan());
  const JobLock lock;  // another thread may be writing a snapshot of all communicators
  state.tree.leadership = std::move(leadership);
}

void note_decisions(CommState& state) {
  if (!state.tree.leadership || !state.tree.leadership->learner || state.tree.broken) return;
  Leadership& lead = *state.tree.leadership;
  const Nanoseconds begin = now();
  {
    const LearnerLock lock(lead);
    lead.reports = lead.learner->reports();
  }
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
  if (!plan.empty()) lock->keep_plan(std::move(plan));
  lead.words_next = now() + kPauseAfterWriting * (now() - begin);
}

void note_outcome(CommState& state) {
  note_decisions(state);
  if (!state.tree.leadership || !state.tree.leadership->learner || state.tree.broken) return;
  Leadership& lead = *state.tree.leadership;
  const core::Learner::Outcome outcome = [&] {
    const LearnerLock lock(lead);
    return lead.learner->outcome();
  }();
  if (state.identity == profiles::kWorldIdentity) note_learned(outcome);
  if (outcome.plan.hash() == lead.latest_hash || (lead.latest_hash == 0 && !outcome.says_anything)) return;
  std::string plan = profiles::plan_json(state.identity, state.size, lead.announced_at, outcome.plan, outcome.reports);
  const JobLock lock;
  lock->keep_plan(std::move(plan));
}

void announce_plan(CommState& state, std::uint64_t n) {
  if (state.rank != 0 || !state.usable()) return;
  Leadership& lead = *state.tree.leadership;
  lead.announced_at = n;
  // The budget of learning, in processor time: 20 ms once, and 2% of the time since the start. It matters in programs
  // with hundreds of slots and calls of a few microseconds. Beyond, the learner announces "as before" without a look at
  // the logs. The names of sites are outside the budget: they are looked up once, and may take more than 20 ms.
  constexpr Nanoseconds kSpentAtFirst = 20'000'000, kPartOfTime = 50;
  const Nanoseconds begin = now(), learned = thread_time() - lead.naming;
  using Kind = core::Announcement::Kind;
  core::Announcement announced;
  bool modelled = false;
  try {
    const LearnerLock lock(lead);
    if (state.member.sequence().may_wait() && lead.learner) {
      lead.learner->add_wait(lead.waited / state.size);
      lead.waited = 0;
    }
    if (!state.tree.broken)
      announced =
          lead.learner->make_announcement(n, state.member.in_force().dropped(), begin,
                                          learning > kSpentAtFirst + (begin - job_process().started) / kPartOfTime);
    modelled = lead.learner && lead.learner->has_modelled();
    lead.announcement = announced.serialize();
    // The leader decides by the plan that the members read, with rounded patterns, and by none that they cannot read.
    if (!core::Announcement::deserialize(lead.announcement, state.size, announced)) {
      announced = {};
      lead.announcement = announced.serialize();
    }
  } catch (const std::bad_alloc&) {
    state.tree.break_without_memory();
    announced = {};
    with_reserve([&] { lead.announcement = announced.serialize(); });  // the members wait for one
  }
  announce_below(state, lead.announcement);
  pump_mail();
  if (lead.learner && !modelled) learning += thread_time() - lead.naming - learned;
  const bool plan = announced.kind == Kind::plan;
  // Make the texts after the messages, for which members may wait. The first 16 plans of a process get texts at once,
  // so that the profile of a short job has them. Later plans wait for words_next: a plan that the next one replaces
  // before that time is not in the profile. A larger number costs more time at boundaries, a smaller one omits more
  // plans.
  constexpr std::size_t kPlansAtOnce = 16;
  try {
    if (plan) lead.latest = {n, announced.plan};
    const bool at_once = plan && [&] {
      const JobLock lock;  // leaders of other communicators add plans
      return lock->mine.plans.size() < kPlansAtOnce;
    }();
    if (at_once || now() >= lead.words_next) note_decisions(state);
  } catch (const std::bad_alloc&) {
    state.tree.break_without_memory();
  }
  if (!plan) return;
  int dispatched = 0;
  for (const core::PlanEntry& e : announced.plan.entries) dispatched += e.algorithm >= 0;
  say(2, "plan announced at call %llu of a communicator of %d: %zu %s, %d of them not native, %zu patterns",
      static_cast<unsigned long long>(n), state.size, announced.plan.entries.size(),
      announced.plan.period ? "slots" : "entries", dispatched, announced.plan.patterns.size());
}

}  // namespace latecomer::shim

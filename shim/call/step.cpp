// SPDX-License-Identifier: BSD-3-Clause
// Carries out the steps of the agreement of a communicator: boundaries, meetings, decisions.
#include "shim/call/step.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <new>

#include "core/agreement/epoch_sample.hpp"
#include "core/base/text.hpp"
#include "shim/call/communicators.hpp"
#include "shim/call/idle.hpp"
#include "shim/call/record.hpp"
#include "shim/causes/usage.hpp"
#include "shim/engine/engine.hpp"
#include "shim/exchange/branch.hpp"
#include "shim/exchange/exchange.hpp"
#include "shim/executor/executor.hpp"
#include "shim/guard.hpp"
#include "shim/log.hpp"
#include "shim/state/clocks.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/cost.hpp"
#include "shim/state/earlier_run.hpp"
#include "shim/state/post.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/shared.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {

namespace {

bool talking() { return job_world().together && job_rules().policy.exchange == core::Exchange::epoch; }

// Rare steps are functions of their own (noinline), so that the common path does not save registers for them.

/// All ranks take part, and wait for each other. So a rank that cannot take part ends the job.
[[gnu::noinline, gnu::cold]] void agree_on_identity(CommState& state, bool waits = false) noexcept {
  const KeepErrno keep;
  const Guard program(Layer::program);  // its error handler
  if (const Outcome done = attempt([&] {
        if (resolve_members(state)) identify_communicator(state, waits);
      });
      !done)
    no_memory_left("the agreement on a communicator");
}

/// Forgets the addresses of libraries that were unloaded.
void forget_unloaded() {
  static constinit std::atomic<unsigned> known{0};
  if (const unsigned refreshed = sites_refresh(); refreshed != known.exchange(refreshed)) idle_forget();
}

/// Mode observe: decides whether this rank logs the epoch that the current call begins. `at`: time of the call.
void choose_epoch(CommState& state, Nanoseconds at) {
  const core::Sequence& sequence = state.member.sequence();
  EpochChoice& choice = state.choice;
  // The geometric mean with the epochs before: after one long epoch among short ones, one or two are logged for its
  // sake.
  if (choice.began == 0) choice.pace = 0;
  else if (choice.pace == 0) choice.pace = choice.length;
  else
    choice.pace =
        static_cast<Nanoseconds>(std::sqrt(static_cast<double>(choice.pace) * static_cast<double>(choice.length)));
  choice.began = at;
  choice.spent = spent.in_run();
  if (!state.member.rests()) count_logged_epoch();
  else if (state.rank == 0 && choice.pace > 0) note_left_out(state, choice.length);
  // Earlier epochs are shorter.
  const bool steady = sequence.next_number() > core::Sequence::kSteadyEpoch && choice.pace > 0;
  const Nanoseconds price = agree_on_price(state, price_of_log());
  choice.level = steady ? core::EpochSample::level_for(price, choice.pace) : 0;
  const bool rested = state.member.rests();
  const bool logged = core::EpochSample::has_epoch(sequence.epochs_ended(), choice.level);
  state.member.begin_alone(logged);
  forget_unloaded();
  if (!logged || !rested) return;
  const JobLock lock;
  state.log(lock).first = sequence.next_number() - 1;
}

[[gnu::noinline, gnu::cold]] void at_boundary(ObservedCall& call, const core::Sequence::Before& step) {
  const KeepErrno keep;
  CommState& state = *call.state;
  const bool rested = state.member.rests();
  const Spending work(rested && job_rules().samples_epochs ? profiles::CostOf::count : profiles::CostOf::exchange);
  if (step.identify) agree_on_identity(state, true);
  if (step.hear) apply_announcement(state, step.n, step.waits);
  if (!step.ends_epoch) return;
  weigh_epoch(state, call.arrival);
  if (rested && job_rules().samples_epochs) return choose_epoch(state, call.arrival);
  try {
    sweep_outgoing();  // of earlier boundaries
  } catch (const std::bad_alloc&) {
    // The next boundary tries again.
  }
  call.ended_epoch = !rested;
  forget_unloaded();
  end_epoch(state, rested);
  if (state.tree.branch) pump_mail();
  if (job_rules().samples_epochs) choose_epoch(state, call.arrival);
  if (step.announce) announce_plan(state, step.n);
}

/// The decision of the policy alone. Cached by signature, because it may search for a number of segments.
core::Decision decide_alone(const core::Signature& signature, int comm_size) {
  struct Known {
    core::Signature signature;
    int comm_size = 0;
    core::Decision decision;
  };
  // Derived: 256 entries of 88 bytes take 22 KiB per process. Of two signatures with the same index, the later replaces
  // the earlier, and each change costs a new decision.
  constexpr std::size_t kKnown = 256;
  static std::array<Known, kKnown>& known =
      *new std::array<Known, kKnown>;  // never destroyed: callbacks may come after exit handlers
  const std::uint64_t place = core::mix64(signature.hash() ^ static_cast<std::uint64_t>(comm_size)) % kKnown;
  {
    const JobLock lock;
    if (const Known& k = known[place]; k.comm_size == comm_size && k.signature == signature) return k.decision;
  }
  const core::Decision decision = core::decide_call(job_rules().policy, signature, comm_size);
  const JobLock lock;
  known[place] = {signature, comm_size, decision};
  return decision;
}

[[gnu::cold]] void note_unplanned(const core::Decision& decision) {
  const JobLock lock;
  auto& all = lock->mine.unplanned;
  const int index = core::index_of(decision.unplanned);
  auto at = std::find_if(all.begin(), all.end(), [&](const profiles::Unplanned& u) { return u.algorithm == index; });
  if (at == all.end()) at = all.insert(all.end(), {index, -1, 0, 0});
  at->instead = core::index_of(decision.algorithm);
  ++at->calls;
  at->messages = std::max(at->messages, decision.planning);
}

[[gnu::noinline]] void set_decision(ObservedCall& call) {
  const KeepErrno keep;
  CommState& state = *call.state;
  const bool planned = !state.member.plan().empty();
  const bool notes = job_rules().announces && state.usable() && call.signature.dispatchable();
  const std::uint64_t hash = planned || notes ? call.signature.hash() : 0;
  const core::PlanEntry* entry = planned ? state.member.find_entry(call.n, hash) : nullptr;
  call.decision = with_reserve([&] {
    return entry ? core::decide_planned_call(job_rules().policy, call.signature, state.size, *entry)
                 : decide_alone(call.signature, state.size);
  });
  if (call.decision.unplanned) [[unlikely]]
    note_unplanned(call.decision);
  if (notes) {
    try {
      if (!state.dispatch.executor) state.dispatch.executor = std::make_unique<Executor>();
      state.dispatch.executor->note_call(state, call.signature, hash, call.operands);
    } catch (const std::bad_alloc&) {
      // The schedule is built inside its call, not ahead of it.
    }
  }
  if (!call.decision.algorithm) return;
  // The agreement waits for all members. So it takes place only in calls that wait for all members anyway.
  if (!state.identified() && core::depends_on_all(call.signature.op, call.signature.bytes)) agree_on_identity(state);
  if (!state.usable() || state.dispatch.refused) {
    call.decision = {};
    return;
  }
  if (job_rules().checks &&
      !check_call(state, call.signature, call.n, call.slot->site.load(std::memory_order_relaxed))) {
    state.dispatch.refused = true;  // on all ranks: the leader told them
    call.decision = {};
    return;
  }
  if (!state.dispatch.executor) state.dispatch.executor = with_reserve([] { return std::make_unique<Executor>(); });
  call.algorithm = static_cast<std::uint8_t>(1 + core::index_of(call.decision.algorithm));
  if (entry && entry->remembered) ++earlier_run().calls;
}

/// A communicator without a tree has nobody to send its log to. Within a budget, the calls after a full log are only
/// counted.
[[gnu::noinline]] void keep_log_short(CommState& state, bool talks) {
  const bool rests = talks && job_rules().samples_epochs;
  if ((rests || !talks) && !state.member.rests() && set_full_log_aside(state) && rests) state.member.begin_alone(false);
}

/// A log that takes so long was interrupted, and stands for itself alone. Derived: a log takes less than 1 us, and a
/// process that takes the core keeps it for 0.7 ms at least.
constexpr Nanoseconds kInterrupted = 500'000;

/// A part of a call that is logged has begun at that time. `had`: what was spent then. Other work in it was counted.
[[gnu::noinline]] void time_of_log(Nanoseconds begin, Nanoseconds had) {
  if (spent.all() != had) return;
  const Nanoseconds took = std::max<Nanoseconds>(job_clocks().common_now() - begin, 0);
  spent.add(profiles::CostOf::log, took < kInterrupted ? static_cast<Nanoseconds>(kTimedCalls) * took : took);
}

/// Whether this rank looks for messages of the exchange after this call.
bool exchange_is_due(const ObservedCall& call) {
  return call.counts() && (call.n >= call.state->tree.look_at || call.state->member.looks_after(call.n));
}

/// The steps that all ranks take together after a call that depends on all of them.
[[gnu::noinline, gnu::cold]] void do_together(CommState& state, core::Sequence::After after) {
  const KeepErrno keep;
  if (after.identify) agree_on_identity(state);
  if (!after.meet) return;
  meet_members(state, false);
  receive_early_announcement(state);
}

[[gnu::noinline, gnu::cold]] void after_call(const ObservedCall& call) {
  const KeepErrno keep;
  const Spending work(profiles::CostOf::exchange);
  CommState& state = *call.state;
  if (call.ended_epoch && job_clocks().domains > 1) {
    hear_offset(job_clocks());
    if (&state == job_world().state && core::depends_on_all(call.signature.op, call.signature.bytes))
      renew_offset(job_clocks());
  }
  if (call.ended_epoch) prepare_snapshot();
  if (state.member.looks_after(call.n)) receive_early_announcement(state);
  if (call.n >= state.tree.look_at) look_for_messages(state, call.n);
}

/// The id of the call's site in the profile.
std::uint64_t id_of(const ObservedCall& call) {
  return profiles::call_id(
      profiles::SiteKey{call.slot->site.load(std::memory_order_relaxed), call.signature.op, call.state->size});
}

}  // namespace

bool may_wait_nonblocking(const CommState& state, const core::Signature& signature) {
  if (state.foreign || state.size == 1) return false;
  return !core::is_reduction(signature.op) || signature.exact ||
         (job_rules().policy.mode == core::Mode::apply && job_rules().policy.reproducible == core::Reproducible::any);
}

void begin_call(ObservedCall& call, void* return_address, void* frame) noexcept {
  CommState& state = *call.state;
  const bool talks = talking();
  core::Sequence::Before step{};
  if (state.size > 1 && !state.foreign && core::is_counted(call.signature)) {
    const bool identified = talks && state.identified();
    // A jump has left the call before, if its end is not registered yet.
    if (const auto after = state.member.steps_after(identified || !talks); after.identify || after.meet) [[unlikely]]
      do_together(state, after);
    step = state.member.steps_before(call.signature, state.size, job_rules().policy, talks && job_rules().rooted_waits,
                                     talks && job_rules().announces && state.context != kContexts,
                                     talks && state.identified());
    call.n = step.n;
  }
  const bool timed = call.counts() && is_timed_call(call.n);
  const Nanoseconds had = timed ? spent.all() : 0;
  try {
    call.slot = with_reserve([&] { return &site_of(return_address, frame); });
    const bool blocks = call.signature.kind == core::CallKind::blocking;
    const Nanoseconds at = call.arrival - job_clocks().offset.load(std::memory_order_relaxed);
    if (blocks) enter_mpi(at);
    if (!call.counts()) return;
    if (mpi_time.watched) {
      if (blocks) {
        sampler.end_interval_at_arrival();
        code_sampler.enter_call([&] { return id_of(call); }, at);
        code_sampler.end_interval([&] { return id_of(call); });
      } else {
        sampler.discard_interval();
        code_sampler.end_interval([] { return std::uint64_t{0}; });
      }
      end_span_at_entry(at, nullptr);
    }
    if (blocks) show_call(call);
    if (step.hear || step.ends_epoch) [[unlikely]]
      at_boundary(call, step);
    if (call.decides && job_world().together) set_decision(call);
    if (state.dispatch.watched && !(call.decision.algorithm && call.decision.algorithm->background))
      skip_engine(state, call.n);
    if (!state.tree.branch) [[unlikely]]
      keep_log_short(state, talks);
    log_call(call);
    if (state.member.rests()) [[unlikely]] {
      call.from = reinterpret_cast<std::uintptr_t>(return_address);
      call.plain_address = plain_address(*call.slot, call.from, reinterpret_cast<std::uintptr_t>(frame), call.through);
    } else if (timed) {
      time_of_log(call.arrival, had);
    }
  } catch (...) {
    // This rank does not know how the other ranks run the call. Native alone would hang the job or change its data.
    if (job_rules().decides) no_memory_left("the decision about a collective");
    warn("no memory for the record of a collective: arrival patterns are lost");
    state.tree.break_without_memory();
  }
}

void end_call(ObservedCall& call) noexcept {
  CommState& state = *call.state;
  const Nanoseconds exit = job_clocks().common_now();
  const Nanoseconds at = exit - job_clocks().offset.load(std::memory_order_relaxed);
  const bool timed = call.counts() && is_timed_call(call.n);
  const Nanoseconds had = timed ? spent.all() : 0;
  // The steps that other ranks rely on need no memory.
  const auto after =
      call.counts() ? state.member.steps_after(state.identified() || !talking()) : core::Sequence::After{};
  live->since.store(at, std::memory_order_relaxed);
  live_leave();
  bool lost = false;
  const Nanoseconds own = own_time(call, exit);
  if (call.slot) try {  // nullptr: there was no memory for the site
      record_exit(call, exit, own);
    } catch (...) {
      lost = true;
    }
  leave_mpi(profiles::ThreadPart::collectives, 1, own, at);
  end_span_at_exit(at, &MpiTime::collectives);
  if (mpi_time.watched && call.counts() && call.slot) {
    code_sampler.leave_call(id_of(call), at);
    code_sampler.end_rest();
  }
  if (after.identify || after.meet) [[unlikely]]
    do_together(state, after);
  try {
    if (job_world().engine_comm != MPI_COMM_NULL) [[unlikely]]
      engine_iteration(exit);
    if (call.ended_epoch || exchange_is_due(call)) [[unlikely]]
      after_call(call);
    keep_on_disk(at);
    if (state.member.rests() && call.slot && !call.decision.algorithm) [[unlikely]] {
      idle_begin(call);
      if (state.idle.left > 0) {
        sampler.discard_interval();
        code_sampler.rest();
      }
    } else if (timed) {
      time_of_log(exit, had);
    }
  } catch (...) {
    lost = true;
  }
  if (lost) [[unlikely]]
    warn("out of memory while recording a collective");
}

}  // namespace latecomer::shim

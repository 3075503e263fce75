// SPDX-License-Identifier: BSD-3-Clause
// Writes the log of the epoch and the counters of the site.
#include "shim/call/record.hpp"

#include <algorithm>

#include "profiles/record/waiting.hpp"
#include "shim/causes/usage.hpp"
#include "shim/causes/waits_for.hpp"
#include "shim/exchange/exchange.hpp"
#include "shim/live/live.hpp"
#include "shim/log.hpp"
#include "shim/state/clocks.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/cost.hpp"
#include "shim/state/not_counted.hpp"
#include "shim/state/process.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/shared.hpp"

namespace latecomer::shim {

namespace {

/// Whether the process has called latecomer_edge since the last call that may be dispatched. Clears the flag.
std::uint8_t edge_of(const ObservedCall& call) {
  if (!job_process().edge_said.load(std::memory_order_relaxed)) [[likely]]
    return 0;
  return call.state->size > 1 && call.signature.dispatchable() && job_process().edge_said.exchange(false);
}

/// Whether the leader needs the arrivals of all ranks in this call, to decide about calls of this kind.
std::uint8_t wanted_of(const ObservedCall& call) {
  return job_rules().announces && call.signature.dispatchable() ? profiles::kSampled : std::uint8_t{0};
}

/// `edge`: takes note of latecomer_edge.
profiles::CallRecord record_of(const ObservedCall& call, bool edge = true) {
  return {.arrival = call.arrival,
          .site = call.slot->site.load(std::memory_order_relaxed),
          .bytes = core::is_irregular(call.signature.op) ? call.block : call.signature.bytes,
          .root = call.signature.root,
          .op = call.signature.op,
          .kind = call.signature.kind,
          .algorithm = call.algorithm,
          .edge = edge ? static_cast<std::uint8_t>(edge_of(call) | wanted_of(call)) : std::uint8_t{0},
          .callers = call.slot->callers.load(std::memory_order_relaxed)};
}

/// Exit time of call n in the log, if it is still there.
void write_exit(const JobLock& lock, CommState& state, std::uint64_t n, Nanoseconds exit) {
  if (profiles::CallRecord* const record = state.log(lock).find(n)) record->exit = exit;
}

[[gnu::noinline]] void write_forecast(const JobLock& lock, CommState& state, std::uint64_t n,
                                      const ExpectedArrival& forecast) {
  profiles::CallRecord* const record = state.log(lock).find(n);
  if (!record) return;
  record->expected =
      static_cast<std::int32_t>(std::min<Nanoseconds>(forecast.expected / profiles::kExpectedUnit, INT32_MAX));
  if (forecast.edge) record->edge |= profiles::kRanByEdge;
}

[[gnu::noinline]] profiles::LocalSite* find_local(const JobLock& lock, const ObservedCall& call) {
  profiles::LocalSite* local =
      &lock->mine.local[{call.slot->site.load(std::memory_order_relaxed), call.signature.op, call.state->size,
                         call.slot->callers.load(std::memory_order_relaxed)}];
  if (call.slot->key.load(std::memory_order_relaxed) != 0) {
    call.slot->local = local;
    call.slot->op = call.signature.op;
    call.slot->comm_size = call.state->size;
  }
  return local;
}

[[gnu::noinline]] void add_to_sample(const ObservedCall& call, Nanoseconds exit) {
  profiles::CallRecord record = record_of(call, false);
  record.exit = exit;
  call.state->sample->add({call.n, record});
}

}  // namespace

Nanoseconds own_time(const ObservedCall& call, Nanoseconds exit) {
  return std::max<Nanoseconds>(exit - call.arrival - (mpi_time.marked() - call.marked), 0);
}

void log_call(const ObservedCall& call) {
  const JobLock lock;  // another thread may be completing a non-blocking call of this communicator
  CommState& state = *call.state;
  if (state.member.rests()) {
    edge_of(call);  // clears the flag: latecomer_edge was about this call, although it is not logged
    return;
  }
  CallLog& log = state.log(lock);
  if (log.records.size() != call.n - log.first || log.records.size() >= core::Sequence::kRootedEpoch) {
    if (!state.member.sequence().may_wait()) ++log.missed;  // with waits, an epoch may be longer than its log
    return;
  }
  try {
    log.records.push_back(record_of(call));
    if (state.tree.leadership && state.tree.leadership->learner) {
      state.tree.leadership->signatures.push_back(call.signature);
      if (call.n == 0) {
        const LearnerLock lock(*state.tree.leadership);
        state.tree.leadership->learner->note_first_call(call.arrival);
      }
    }
  } catch (const std::bad_alloc&) {
    // A record without its signature would shift the signatures behind it.
    if (log.records.size() > call.n - log.first) log.records.pop_back();
    ++log.missed;
    note_lack_of_memory();
  }
}

void record_exit(ObservedCall& call, Nanoseconds exit, Nanoseconds own) {
  const JobLock lock;  // another thread may be completing a non-blocking call of this communicator
  CommState& state = *call.state;
  SiteSlot& slot = *call.slot;
  write_exit(lock, state, call.n, exit);
  if (call.forecast.expected >= 0) [[unlikely]]
    write_forecast(lock, state, call.n, call.forecast);
  if (state.sample && call.counts() && state.sample->keeps(call.n)) [[unlikely]]
    add_to_sample(call, exit);
  profiles::LocalSite* local = slot.local;
  if (!slot.serves(call.signature.op, state.size)) [[unlikely]]
    local = find_local(lock, call);
  const Nanoseconds spent = std::max<Nanoseconds>(exit - call.arrival, 0);
  const bool rests = state.member.rests();
  mpi_time.collectives += own;
  if (job_rules().samples_epochs && (rests || state.choice.level > 0) && call.counts()) [[unlikely]] {
    // An epoch's times count at its end, because they stand for other epochs (weigh_epoch).
    mpi_time.stood_for -= own;
    if (!rests) state.choice.beneath += spent - own;
    if (rests) sampler.discard_interval();
    else if (mpi_time.watched)
      sampler.begin_interval_at_exit(local->before, call.arrival, exit, 1U << state.choice.level);
    lock->queue.add(local, -1, call.bytes(), false, state.tally(call.signature.root));
    return;
  }
  if (mpi_time.watched) sampler.begin_interval_at_exit(local->before, call.arrival, exit, 1);
  lock->queue.add(local, spent, call.bytes(), rests && call.algorithm == 0, state.tally(call.signature.root));
}

void weigh_epoch(CommState& state, Nanoseconds end) {
  EpochChoice& choice = state.choice;
  choice.length = std::max<Nanoseconds>(end - choice.began - (spent.in_run() - choice.spent), 1);
  const JobLock lock;
  // Threads come here in another order than their calls began.
  const Nanoseconds slice = std::max<Nanoseconds>(end - std::exchange(lock->epochs_until, end), 0),
                    left = choice.classes.left();
  if (choice.level == 0) return;
  const bool logged = !state.member.rests();
  core::EpochClasses::Weight weight;
  if (logged) weight = choice.classes.take(choice.length, choice.level);
  else choice.classes.leave_out(choice.length, std::min(slice, choice.length));
  lock->mine.process.unlogged += choice.classes.left() - left;
  if (!logged) return;
  double all = 0;
  for (const profiles::CallRecord& record : state.log(lock).records) {
    if (record.kind != core::CallKind::blocking || record.exit == 0) continue;
    const Nanoseconds took = std::max<Nanoseconds>(record.exit - record.arrival, 0);
    lock->mine.local[{record.site, record.op, state.size, record.callers}].elapsed.add(took, weight.epochs,
                                                                                       weight.time);
    all += static_cast<double>(took);
  }
  all = std::max(0.0, all - static_cast<double>(std::exchange(choice.beneath, 0)));
  mpi_time.stood_for += static_cast<Nanoseconds>(all * weight.time);
}

namespace {
bool waits_for_neighbours(core::Collective op) { return profiles::waiting_in(op) == profiles::WaitRule::unknown; }
}  // namespace

void record_completion(const PendingCall& call) {
  const JobLock lock;
  const profiles::CallRecord& record = call.record;
  const bool stood_for = job_rules().samples_epochs;
  if (call.comm_size > 1 && call.share <= profiles::Tally::owned) {
    if (!waits_for_neighbours(record.op))
      declined.add(call.persistent ? profiles::Uncounted::persistent : profiles::Uncounted::nonblocking);
    else if (call.persistent) declined.add(profiles::Uncounted::neighbours);
  }
  if (call.state && !call.persistent) write_exit(lock, *call.state, call.n, record.exit);
  lock->queue.add(
      &lock->mine.local[{record.site, record.op, call.comm_size, record.callers}],
      record.exit == 0 || (call.rested && stood_for) ? -1 : std::max<Nanoseconds>(record.exit - record.arrival, 0),
      core::is_irregular(record.op) ? -1 : record.bytes, call.rested && !stood_for, call.share);
}

void show_call(const ObservedCall& call) {
  constexpr auto plain = std::memory_order_relaxed;
  live->communicator.store(call.state->identity, plain);
  live->comm_size.store(call.state->size, plain);
  live_enter(call.n, call.slot->site.load(plain), call.signature.bytes, call.signature.root, call.signature.op,
             call.arrival - job_clocks().offset.load(plain));
}

void defer_call(ObservedCall& call, MPI_Request request) noexcept try {
  if (!call.slot) return;
  PendingCall pending;
  pending.request = request;
  pending.state = call.state;
  pending.n = call.n;
  pending.record = record_of(call);
  pending.comm_size = call.state->size;
  pending.share = call.state->tally(call.signature.root);
  pending.rested = call.state->member.rests() && call.counts();
  pending.persistent = call.signature.kind == core::CallKind::persistent;
  note_pending(pending);
  if (waits_for_neighbours(call.signature.op) && !pending.persistent && pending.comm_size > 1 && call.counts())
    note_neighbours(call.state->comm, request);
  keep_on_disk(call.arrival - job_clocks().offset.load(std::memory_order_relaxed));
} catch (...) {
  warn("out of memory while recording a collective");
}

}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// The logs of a rank: sent up the tree at the end of an epoch, set aside without an exchange, or kept for the end of
// the job.
#include <algorithm>
#include <new>
#include <utility>

#include "shim/exchange/branch.hpp"
#include "shim/guard.hpp"
#include "shim/log.hpp"
#include "shim/state/clocks.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/not_counted.hpp"
#include "shim/state/shared.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {

namespace {
/// Calls from the begin of an epoch to the first look for messages of the tree, and from one look to the next at most.
constexpr std::uint32_t kFirstLook = 4, kFarLook = 32;

/// Takes the log of the epoch that ends before call `next`, and starts a new one.
std::vector<profiles::CallRecord> take_log(CommState& state, std::uint64_t next) {
  const JobLock lock;  // another thread may be completing a non-blocking call of this communicator
  CallLog& log = state.log(lock);
  if (log.missed > 0) {
    warn("a log was full, or had no memory: %u calls have no arrival patterns", log.missed);
    declined.add(profiles::Uncounted::logs, log.missed);
    log.missed = 0;
  }
  log.first = next;
  return std::exchange(log.records, std::exchange(log.spare, {}));
}

/// Keeps the signatures of an epoch of `calls` calls until the leader counts them.
void keep_signatures(Leadership& lead, std::uint64_t first, std::size_t calls) {
  // The node gives up older epochs, too.
  constexpr std::size_t kMostWaiting = 16;
  const LearnerLock lock(lead);
  const std::uint64_t from = first + calls - std::min(lead.signatures.size(), calls);
  lead.waiting.emplace_back(from, std::exchange(lead.signatures, std::exchange(lead.spare, {})));
  lead.signatures.clear();
  if (lead.waiting.size() > kMostWaiting) lead.waiting.erase(lead.waiting.begin());
}

/// Sends the log of the calls before `next` up.
void pass_epoch(CommState& state, std::uint64_t next) {
  const std::uint64_t first = state.log(JobLock()).first;
  auto log = take_log(state, next);
  if (state.usable() && state.size > 1 && !state.tree.broken && state.tree.branch) {
    if (state.tree.leadership && state.tree.leadership->learner && !log.empty())
      try_patterns([&] { keep_signatures(*state.tree.leadership, first, log.size()); });
    try_patterns([&] { pass_log(state, first, log, next); });
  }
  state.tree.waited = 0;
  const JobLock lock;
  log.clear();
  state.log(lock).spare = std::move(log);
}

}  // namespace

void end_epoch(CommState& state, bool rested) {
  const std::uint64_t next = state.member.sequence().next_number() - 1;  // the call that ends the epoch begins the next
  if (rested) {
    take_log(state, next);
    if (state.tree.branch) flush_digests(state);
    state.tree.waited = 0;
  } else {
    pass_epoch(state, next);
  }
  if (state.tree.branch) {
    // In a short epoch calls take long, and the next announcement needs the logs.
    state.tree.look_distance = state.member.sequence().has_brief_epoch() ? 1 : kFirstLook;
    state.tree.look_at = next + state.tree.look_distance;
  }
  const JobLock lock;
  try {
    state.log(lock).records.reserve(2 *
                                    core::Sequence::kSteadyEpoch);  // a communicator with one epoch usually has more
  } catch (const std::bad_alloc&) {
    // Each record tries again to get memory.
  }
}

void end_last_epoch(CommState& state) {
  if (!state.tree.branch) return;
  if (!state.member.rests()) pass_epoch(state, state.member.sequence().next_number());
  else flush_digests(state);
  end_branch(state);
}

void look_for_messages(CommState& state, std::uint64_t n) {
  if (!state.tree.branch) {
    state.tree.look_at = UINT64_MAX;
    return;
  }
  pump_mail();
  // The next log may come late, and the parent looks for messages until it has the sums.
  if (state.member.rests()) flush_digests(state);
  // Derived: a look takes 50 ns. An epoch of 128 calls has six looks, and a message that has arrived waits for a
  // quarter of an epoch at most.
  state.tree.look_distance = std::min(2 * state.tree.look_distance, kFarLook);
  state.tree.look_at = expects_mail(state) ? n + state.tree.look_distance : UINT64_MAX;
}

bool set_full_log_aside(CommState& state) {
  if (state.log(JobLock()).records.size() < core::Sequence::kRootedEpoch) return false;
  retain_log(state);
  const JobLock lock;
  CallLog& log = state.log(lock);
  log.missed = 0;
  log.first = state.member.sequence().next_number() - 1;
  log.records.clear();
  return true;
}

namespace {

/// Keeps records until the end of the job.
void retain(const JobLock& lock, const profiles::LiveLog& log) {
  // In a large job rank 0 receives the records of all ranks.
  const std::size_t most =
      std::max<std::size_t>(kRetainedRecords * 64 / static_cast<std::size_t>(std::max(job_world().size, 64)), 256);
  if (log.communicator == 0 || lock->retained_records + log.records.size() > most) {
    lock->retained_missed += log.records.size();
    declined.add(profiles::Uncounted::logs, log.records.size());
    return;
  }
  lock->retained_records += log.records.size();
  lock->mine.logs.push_back({log.communicator,
                             log.comm_size,
                             log.comm_rank,
                             log.world_rank,
                             log.first,
                             {log.records.begin(), log.records.end()},
                             log.counted});
}

}  // namespace

void retain_log(const CommState& state) {
  if (state.foreign || state.size < 2 || state.world.empty() || state.tree.branch) return;
  const JobLock lock;
  const CallLog& log = state.log(lock);
  if (log.records.empty()) return;
  lock->retained_missed += log.missed;
  declined.add(profiles::Uncounted::logs, log.missed);
  retain(lock, {state.identity, state.size, state.rank, state.world[static_cast<std::size_t>(state.rank)], log.first,
                log.records});
}

void retain_open_logs() {
  std::vector<profiles::LiveLog> open;
  const auto held = add_open_logs(open, true);
  const JobLock lock;
  for (const profiles::LiveLog& log : open) retain(lock, log);
}

}  // namespace latecomer::shim

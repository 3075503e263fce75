// SPDX-License-Identifier: BSD-3-Clause
// The engine's thread: it takes notices, begins runs and moves them while the process is away.
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <new>

#include "shim/causes/code_samples.hpp"
#include "shim/clock.hpp"
#include "shim/engine/background_engine.hpp"
#include "shim/mpi/file_progress.hpp"
#include "shim/waiting/courteous.hpp"

namespace latecomer::shim {

bool BackgroundEngine::take_notice(std::unique_lock<std::mutex>& lock) {
  bool there = false;
  Notice notice;
  Unlocked(lock).run([&] { there = notices_.take_notice(notice); });
  if (!there) return false;
  ++received_;
  ++figures_.notices;
  const auto found = watched_.find(notice.identity);
  if (found == watched_.end() || notice.n < found->second->begun.load(std::memory_order_acquire)) return true;
  if (std::any_of(pending_.begin(), pending_.end(),
                  [&](const Notice& p) { return p.identity == notice.identity && p.n == notice.n; }))
    return true;
  if (std::any_of(runs_.begin(), runs_.end(),
                  [&](const auto& r) { return r->watched->identity == notice.identity && r->n == notice.n; }))
    return true;
  // Derived: 1,024 notices of 64 bytes take 64 KiB per rank. A further notice is dropped: the process does its part
  // when it arrives.
  constexpr std::size_t kPending = 1024;
  if (pending_.size() < kPending) pending_.push_back(notice);
  return true;
}

void BackgroundEngine::begin_pending() {
  for (bool any = true; any;) {
    any = false;
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      const Notice notice = pending_[i];
      const auto found = watched_.find(notice.identity);
      const bool stale = found == watched_.end() || notice.n < found->second->begun.load(std::memory_order_acquire);
      if (!stale && !can_start(found->second, notice)) continue;
      pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i--));
      if (stale) continue;
      begin_run_early(found->second, notice);
      any = true;
    }
  }
}

bool BackgroundEngine::can_start(const std::shared_ptr<Watched>& watched, const Notice& notice) {
  std::uint64_t next = watched->posted.load(std::memory_order_acquire);
  for (bool further = true; further;) {
    further = false;
    for (const auto& r : runs_)
      if (r->watched == watched && r->n == next && !r->left && r->running.all_posted()) {
        ++next;
        further = true;
      }
  }
  if (notice.n != next) return false;
  if (notice.pattern == kOwn && !edges_.frozen_pattern(*watched, notice.plan_hash)) return false;
  if (notice.pattern >= 0 && (!watched->plan || watched->plan_hash != notice.plan_hash ||
                              notice.pattern >= static_cast<std::int32_t>(watched->plan->patterns.size())))
    return false;
  return held_ < bound_;
}

void BackgroundEngine::begin_run_early(const std::shared_ptr<Watched>& watched, const Notice& notice) try {
  ScheduleKey key;
  key.algorithm = &core::algorithm_at(notice.algorithm);
  key.count = notice.count;
  key.element_bytes = notice.element_bytes;
  key.segments = notice.segments;
  key.pattern = notice.pattern;
  key.root = notice.root;
  key.overlap = notice.overlap != 0;
  key.commutative = notice.commutative != 0;
  std::optional<core::Pattern> own;
  if (notice.pattern == kOwn) own = edges_.frozen_pattern(*watched, notice.plan_hash);
  if (notice.pattern == kOwn && !own) return;  // the process has just taken the pattern, and runs the whole call
  std::unique_ptr<Run> run = make_run(watched, notice.n, key, watched->plan.get(),
                                      own ? notice.plan_hash : watched->plan_hash, own ? &*own : nullptr);
  if (held_ + run->scratch_bytes() > bound_) return recycle_run(std::move(run));  // the process runs this part
  runs_.push_back(std::move(run));
  runs_.back()->early = true;
  held_ += runs_.back()->scratch_bytes();
  ++figures_.begun;
} catch (const std::bad_alloc&) {
  // The process runs this part when it arrives.
}

void BackgroundEngine::run_thread() {
  CodeSampler::leave_out_thread();
  // A poll that finds nothing costs as much as a timer: measured 2 to 5 us on a real machine, 20 to 50 us on a virtual
  // machine. It may take this time from the program's core. So the cost of a poll on this machine sets the pause
  // between two polls. While messages move, the engine polls again at once. The budget of polls that find nothing is
  // 0.4% of a core. A smaller budget would delay messages: at 20 us per poll, the pause is 5 ms.
  constexpr double kShare = 0.004;
  // The first pause after a message. It doubles up to the pause of the budget. A shorter one costs more polls after
  // each message, a longer one delays each message of a run.
  constexpr Nanoseconds kShortest = 50'000;
  // The limits of the budget's pause. Derived: a poll of 2 us, the cheapest measured, may come every 0.5 ms. The
  // engine polls every 20 ms even if a poll costs more than 80 us.
  constexpr Nanoseconds kIdle = 500'000, kLongest = 20'000'000;
  prctl(PR_SET_TIMERSLACK, 1000);
  this_thread_serves();
  Nanoseconds pause = kIdle, spent = thread_time();
  double cost = 20'000;  // ns of a poll that finds nothing, with its timer: the mean of the last 16 or so
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!used_) {
      // No call was dispatched yet, so no notice can come. stop() notifies without the lock: if this wait misses it,
      // the end of the job is late by at most 250 ms.
      wake_.wait_for(lock, std::chrono::milliseconds(250), [&] { return used_ || stopping_; });
      continue;
    }
    const unsigned progress = network_progress;
    bool moved = false, active = edges_.awaits_messages();
    while (take_notice(lock)) moved = true;
    Unlocked(lock).run([&] {
      while (edges_.take_message()) moved = true;
    });
    begin_pending();
    for (auto at = runs_.begin(); at != runs_.end();) {
      Run& r = **at;
      bool step = false, over = r.running.background_done();
      if (!over) {
        r.stepped = true;
        Unlocked(lock).run([&] { over = r.running.step(step) != MPI_SUCCESS || r.running.background_done(); });
        r.stepped = false;
        claimable_.notify_all();
      }
      moved = moved || step;
      if (over && r.left) {
        auto run = std::move(*at);
        at = runs_.erase(at);
        recycle_run(std::move(run));
        continue;
      }
      active = active || !over;
      ++at;
    }
    figures_.busy = thread_time();
    if (moved || (active && network_progress != progress)) {
      pause = kShortest;
      spent = figures_.busy;
      lock.unlock();
      sched_yield();
      lock.lock();
      continue;
    }
    cost += (static_cast<double>(figures_.busy - spent) - cost) / 16;
    spent = figures_.busy;
    // The longer the process has been away, the less the delay of a poll matters.
    const auto rationed = static_cast<Nanoseconds>(cost / kShare);
    const Nanoseconds idle = std::clamp<Nanoseconds>(std::max(rationed, (now() - last_claim_) / 100), kIdle, kLongest);
    pause = active ? std::min(2 * pause, idle) : idle;
    wake_.wait_for(lock, std::chrono::nanoseconds(pause), [&] { return kicked_ || stopping_; });
    kicked_ = false;
  }
}

}  // namespace latecomer::shim

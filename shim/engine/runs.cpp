// SPDX-License-Identifier: BSD-3-Clause
// The runs of calls: their owner (the process or the engine), and the schedules and the memory that later runs reuse.
// BackgroundEngine::run_call() is the process's side of a call.
#include <algorithm>
#include <new>
#include <utility>

#include "shim/clock.hpp"
#include "shim/engine/background_engine.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {

int BackgroundEngine::run_call(const std::shared_ptr<Watched>& watched, std::uint64_t n, const ScheduleKey& key,
                               const Operands& operands, const OwnPattern* own, int failure) {
  std::list<std::unique_ptr<Run>> place(1);  // allocated before the first message
  std::unique_ptr<Run> run = claim_run(watched, n, key, own, failure == MPI_SUCCESS);
  Run& r = *run;
  r.running.note_failure(failure);
  // The engine began a gather without knowing of MPI_IN_PLACE. The root's own block is already in its receive buffer.
  char* input = static_cast<char*>(const_cast<void*>(operands.send));
  if (key.in_place && core::is_gather(key.algorithm->op))
    input = static_cast<char*>(operands.recv) + watched->rank * key.count;
  r.running.set_buffers(input, static_cast<char*>(operands.recv), MPI_BYTE, MPI_OP_NULL, Layout::bytes());
  const int rc =
      r.running.run_until(job_rules().courteous, [&] { return r.running.foreground_done() && r.running.all_posted(); });
  if (rc != MPI_SUCCESS) r.running.drop_messages();
  const std::lock_guard lock(mutex_);
  watched->posted.store(n + 1, std::memory_order_release);
  r.left = true;
  const int out = rc == MPI_SUCCESS ? r.running.failure() : rc;
  if (rc != MPI_SUCCESS || r.running.done()) {
    recycle_run(std::move(run));
  } else {
    place.front() = std::move(run);
    runs_.splice(runs_.end(), place);
    wake_thread();
  }
  return out;
}

std::unique_ptr<BackgroundEngine::Run> BackgroundEngine::claim_run(const std::shared_ptr<Watched>& watched,
                                                                   std::uint64_t n, const ScheduleKey& key,
                                                                   const OwnPattern* own, bool scratch) {
  std::unique_lock lock(mutex_);
  if (!used_) wake_thread();
  last_claim_ = now();
  watched->begun.store(n + 1, std::memory_order_relaxed);
  std::erase_if(pending_, [&](const Notice& p) { return p.identity == watched->identity && p.n <= n; });
  for (auto at = runs_.begin(); at != runs_.end(); ++at) {
    if ((*at)->watched != watched || (*at)->n != n || (*at)->left) continue;
    Run& mine = **at;  // stays in the list: no other thread claims it
    claimable_.wait(lock, [&] { return !mine.stepped; });
    std::unique_ptr<Run> run = std::move(*at);
    runs_.erase(at);
    if (run->running.background_done()) ++figures_.complete;
    return run;
  }
  ScheduleKey plain = key;
  plain.in_place = plain.in_place && !core::is_gather(key.algorithm->op);
  if (own) plain.pattern = kOwn;
  return make_run(watched, n, plain, watched->plan.get(), own ? own->number : watched->plan_hash,
                  own ? &own->pattern : nullptr, scratch);
}

std::unique_ptr<BackgroundEngine::Run> BackgroundEngine::make_run(const std::shared_ptr<Watched>& watched,
                                                                  std::uint64_t n, const ScheduleKey& key,
                                                                  const core::Plan* plan, std::uint64_t plan_hash,
                                                                  const core::Pattern* own, bool scratch) {
  std::unique_ptr<Run> run;
  if (!idle_.empty()) {
    run = std::move(idle_.back());
    idle_.pop_back();
  } else run = std::make_unique<Run>();
  run->engine = this;
  run->watched = watched;
  run->n = n;
  run->key = key;
  run->plan_hash = key.pattern < 0 && !own ? 0 : plan_hash;
  run->left = run->early = false;
  run->program = nullptr;
  if (own) run->program = build_schedule(watched->rank, watched->world, key, *own);
  for (auto& kept : kept_)
    if (!run->program && kept.key == key && kept.identity == watched->identity && kept.plan_hash == run->plan_hash &&
        kept.program) {
      run->program = std::move(kept.program);
      break;
    }
  if (!run->program) run->program = build_schedule(watched->rank, watched->world, key, plan);
  const std::size_t need = scratch ? static_cast<std::size_t>(run->scratch_bytes()) + 64 : 0;
  if (run->scratch.size() < need) run->scratch.resize(need);
  run->told.assign(static_cast<std::size_t>(watched->size), 0);
  run->running.begin_schedule(*run->program, {comm_, watched->context, watched->world, job_world().rank}, run.get());
  run->running.give_scratch(run->scratch.data(), Layout::bytes());
  return run;
}

void BackgroundEngine::recycle_run(std::unique_ptr<Run> run) try {
  if (run->early) held_ -= run->scratch_bytes();
  if (run->key.pattern == kOwn) run->program.reset();  // its pattern is of this call alone
  // Derived: idle runs keep at most 8 x 1 MiB of scratch memory per rank. Beyond these limits the memory is freed, and
  // a later run allocates it again.
  constexpr std::size_t kIdle = 8;
  constexpr std::size_t kSmallScratch = 1 << 20;
  if (run->program) keep_program(*run);
  run->watched.reset();
  if (run->scratch.size() > kSmallScratch) std::vector<char>().swap(run->scratch);
  if (idle_.size() < kIdle) idle_.push_back(std::move(run));
} catch (const std::bad_alloc&) {
  // A later run builds its schedule again.
}

void BackgroundEngine::keep_program(Run& run) {
  // As many as an executor keeps (kKeptSchedules). Beyond, the places are used in turn: the schedule there is dropped,
  // and built again for its next call.
  constexpr std::size_t kPrograms = 64;
  Kept* place = nullptr;
  for (auto& kept : kept_)
    if (!kept.program && (!place || kept.key == run.key)) place = &kept;
  if (!place && kept_.size() < kPrograms) place = &kept_.emplace_back();
  if (!place) place = &kept_[next_victim_++ % kept_.size()];
  *place = {run.key, run.watched->identity, run.plan_hash, std::move(run.program)};
}

void BackgroundEngine::send_notice(const Run& run, Rank peer) try {
  const ScheduleKey& k = run.key;
  notices_.send_notice({run.watched->identity,
                        run.n,
                        run.plan_hash,
                        k.count,
                        core::index_of(k.algorithm),
                        k.segments,
                        k.pattern,
                        k.root,
                        k.overlap,
                        k.commutative,
                        {},
                        k.element_bytes},
                       run.watched->world[static_cast<std::size_t>(peer)]);
} catch (const std::bad_alloc&) {
  // The peer's process does its part when it arrives.
}

int run_with_engine(CommState& state, std::uint64_t n, const ScheduleKey& key, const Operands& operands,
                    const OwnPattern* own, int failure) {
  return engine->run_call(state.dispatch.watched, n, key, operands, own, failure);
}

}  // namespace latecomer::shim

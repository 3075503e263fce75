// SPDX-License-Identifier: BSD-3-Clause
// The calls of the process to the engine outside the run of a call: communicators, plans, progress of the program.
#include <algorithm>

#include "shim/engine/background_engine.hpp"
#include "shim/state/communicator.hpp"

namespace latecomer::shim {

void BackgroundEngine::add_communicator(std::shared_ptr<Watched> watched) {
  edges_.add_communicator(watched);
  const std::lock_guard lock(mutex_);
  watched_[watched->identity] = std::move(watched);
}
void BackgroundEngine::remove_communicator(const Watched& watched) {
  edges_.remove_communicator(watched);
  const std::lock_guard lock(mutex_);
  watched_.erase(watched.identity);
  std::erase_if(pending_, [&](const Notice& p) { return p.identity == watched.identity; });
}

void BackgroundEngine::set_plan(Watched& watched, const core::Plan& plan, std::uint64_t hash) {
  auto copy = std::make_shared<const core::Plan>(plan);
  const core::PlanEntry* own = nullptr;
  for (const auto* all : {&plan.turns, &plan.entries})
    for (const core::PlanEntry& e : *all)
      if (e.edge != 0) own = &e;
  if (own) edges_.expect_predictions(watched, offsets_of(plan, own->pattern));
  const std::lock_guard lock(mutex_);
  watched.plan = std::move(copy);
  watched.plan_hash = hash;
  if (own) wake_thread();
}

void BackgroundEngine::predict_arrival(double fraction, Nanoseconds at) {
  const Nanoseconds begin = iteration_began_;
  if (begin == 0 || !(fraction > 0) || said_.exchange(true)) return;
  edges_.predict_arrival(begin + static_cast<Nanoseconds>(static_cast<double>(at - begin) / fraction), at);
}

std::optional<OwnPattern> BackgroundEngine::take_pattern(const Watched& watched, int planned, Nanoseconds arrival) {
  std::shared_ptr<const core::Plan> plan;
  {
    const std::lock_guard lock(mutex_);
    plan = watched.plan;
  }
  said_ = false;
  return edges_.take_pattern(watched, plan ? offsets_of(*plan, planned) : std::span<const Nanoseconds>(), arrival);
}

void BackgroundEngine::greet_ranks(std::span<const Rank> world) {
  for (const Rank r : world) edges_.greet_rank(r);
  const std::lock_guard lock(mutex_);
  if (!used_) wake_thread();
}

EngineFigures BackgroundEngine::figures() {
  const std::lock_guard lock(mutex_);
  EngineFigures out = figures_;
  out.patterns = edges_.patterns();
  out.edge_messages = edges_.messages();
  return out;
}

void add_to_engine(CommState& state) {
  if (!engine || !state.usable() || state.size < 2) return;
  auto watched = std::make_shared<Watched>();
  watched->identity = state.identity;
  watched->context = state.context;
  watched->size = state.size;
  watched->rank = state.rank;
  watched->world = state.world;
  watched->begun = watched->posted = state.member.sequence().next_number();
  state.dispatch.watched = watched;
  engine->add_communicator(std::move(watched));
  if (!state.member.plan().empty()) engine_plan(state);
}

void remove_from_engine(CommState& state) {
  if (engine && state.dispatch.watched) engine->remove_communicator(*state.dispatch.watched);
  state.dispatch.watched.reset();
}

void engine_plan(CommState& state) {
  if (engine && state.dispatch.watched)
    engine->set_plan(*state.dispatch.watched, state.member.plan(), state.member.in_force().hash());
}

void engine_edge(double fraction, Nanoseconds at) {
  if (engine) engine->predict_arrival(fraction, at);
}
std::optional<OwnPattern> engine_pattern(CommState& state, int planned, Nanoseconds arrival) {
  return engine ? engine->take_pattern(*state.dispatch.watched, planned, arrival) : std::nullopt;
}
void engine_greet(std::span<const Rank> world) {
  if (engine) engine->greet_ranks(world);
}
void engine_iteration(Nanoseconds at) {
  if (engine) engine->begin_iteration(at);
}

}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// The member's side of an announcement: receives it early, in time for its children, at its call, or when the
// communicator ends. A node sends it on as soon as it has it.
#include "shim/dispatch/engine/engine.hpp"
#include "shim/dispatch/exchange/messages.hpp"
#include "shim/dispatch/executor/executor.hpp"
#include "shim/log.hpp"

namespace latecomer::shim {

using namespace exchange;

namespace {
/// Fills state.heard if it is empty. Returns false if no announcement has arrived.
bool take_announcement(CommState& state) {
  using Kind = core::Learner::Announcement::Kind;
  if (state.heard) return true;
  auto heard = std::make_unique<core::Learner::Announcement>();
  if (state.rank == 0) {
    *heard = std::move(state.leadership->announced);
  } else {
    Header header;
    std::vector<char> body;
    if (!take(state.world[static_cast<std::size_t>(state.place.parent)], tag_of(state.context, kPlanChannel),
              state.identity, header, body))
      return false;
    post_down(state, header, body.data() + sizeof header, body.size() - sizeof header);
    heard->kind = static_cast<Kind>(header.kind);
    heard->rest = header.rest != 0;
    heard->epoch = header.epoch;
    // MPI delivers the leader's bytes whole. So if they are no valid plan here, they are none on any rank.
    if (heard->kind == Kind::plan)
      with_reserve([&] {
        return core::Plan::deserialize({body.data() + sizeof header, body.size() - sizeof header}, state.size,
                                       heard->plan);
      });
  }
  state.heard = std::move(heard);
  return true;
}
}  // namespace

void hear_last(CommState& state) {
  if (state.rank == 0 || state.heard || !state.usable() || !state.sequence.awaits()) return;
  Header header;
  std::vector<char> body;
  take(state.world[static_cast<std::size_t>(state.place.parent)], tag_of(state.context, kPlanChannel), state.identity,
       header, body);
}

void hear_early(CommState& state) try {
  if (!state.usable() || state.broken) return;
  try {
    if (!with_reserve([&] { return take_announcement(state); })) return;
  } catch (const std::bad_alloc&) {
    return no_memory_left("a plan");  // it may be received already
  }
  if (state.heard->kind == core::Learner::Announcement::Kind::plan && state.executor)
    state.executor->prepare(state, state.heard->plan);
} catch (const std::bad_alloc&) {
  // The schedules are built inside their calls, not ahead of them.
}

void pass_on(CommState& state) {
  BoundaryWait wait(state, false);
  while (!with_reserve([&] { return take_announcement(state); })) wait.again();
  hear_early(state);
}

void hear(CommState& state, std::uint64_t n, bool waits) {
  using Kind = core::Learner::Announcement::Kind;
  if (!state.usable()) return;
  BoundaryWait wait(state, waits);
  while (!with_reserve([&] { return take_announcement(state); })) wait.again();
  if (waits) state.waited += wait.so_far();
  const auto heard = std::move(state.heard);
  if (state.rank == 0 && !heard->rest && !state.broken) try {
      const LearnerLock lock(*state.leadership);
      state.leadership->learner->in_force(n);
    } catch (const std::bad_alloc&) {
      state.broken = true;
    }
  state.sequence.lasts(heard->epoch);
  state.resting = heard->rest && heard->kind == Kind::none;
  if (heard->kind == Kind::keep || (heard->kind == Kind::none && state.plan.plan().empty())) return;
  with_reserve([&] { state.plan.install(std::move(heard->plan)); });
  with_reserve([&] { engine_plan(state); });
  if (state.executor) state.executor->change_plans();
}

}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// The member's side of an announcement: receives it early, meets the other members when all must have it, and puts it
// in force at its call.
#include <cstring>

#include "shim/dispatch/engine/engine.hpp"
#include "shim/dispatch/exchange/branch.hpp"
#include "shim/dispatch/exchange/messages.hpp"
#include "shim/dispatch/executor/executor.hpp"
#include "shim/guard.hpp"
#include "shim/log.hpp"

namespace latecomer::shim {

using namespace exchange;

namespace {

/// Fills state.heard if it is empty. Returns false if no announcement has arrived.
bool receive_announcement(CommState& state) {
  using Kind = core::Learner::Announcement::Kind;
  if (state.heard) return true;
  auto heard = std::make_unique<core::Learner::Announcement>();
  if (state.rank == 0) {
    *heard = std::move(state.leadership->announced);
  } else {
    Header header;
    std::vector<char> message;
    if (!take_announcement(state, message)) return false;
    std::memcpy(&header, message.data(), sizeof header);
    heard->kind = static_cast<Kind>(header.kind);
    heard->rest = header.rest != 0;
    heard->epoch = header.epoch;
    // MPI delivers the leader's bytes whole. So if they are no valid plan here, they are none on any rank.
    if (heard->kind == Kind::plan)
      with_reserve([&] {
        return core::Plan::deserialize({message.data() + sizeof header, message.size() - sizeof header}, state.size,
                                       heard->plan);
      });
  }
  state.heard = std::move(heard);
  return true;
}

}  // namespace

void hear_early(CommState& state) try {
  if (!state.usable() || state.broken) return;
  pump_mail();
  try {
    if (!with_reserve([&] { return receive_announcement(state); })) return;
  } catch (const std::bad_alloc&) {
    return no_memory_left("a plan");  // it may be received already
  }
  if (state.heard->kind == core::Learner::Announcement::Kind::plan && state.executor)
    state.executor->prepare(state, state.heard->plan);
} catch (const std::bad_alloc&) {
  // The schedules are built inside their calls, not ahead of them.
}

void meet(CommState& state, bool waits) try {
  if (!state.usable()) return;
  const Guard program(Layer::program);  // its error handler
  const auto receive = [&] { return with_reserve([&] { return exchange_mail(), receive_announcement(state); }); };
  int all = receive();
  const MPI_Comm members = &state == job().world_state ? job().comm : state.comm;
  if (!waits) {
    // As a rule all have it.
    if (PMPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, members) != MPI_SUCCESS) {
      state.broken = true;
      return;
    }
    if (all != 0) return;
  }
  // A rank is here until all have the announcement, and until then it sends and takes messages.
  BoundaryWait wait(state, waits);
  while (!receive()) wait.again();
  MPI_Request request;
  int rc = PMPI_Ibarrier(members, &request);
  for (int done = 0; rc == MPI_SUCCESS && !done;) {
    pump_mail();
    rc = PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done) wait.again();
  }
  if (rc != MPI_SUCCESS) state.broken = true;
  if (waits) state.waited += wait.so_far();
} catch (const std::bad_alloc&) {
  no_memory_left("a plan");
}

void hear(CommState& state, std::uint64_t n, bool waits) {
  using Kind = core::Learner::Announcement::Kind;
  if (!state.usable()) return;
  if (waits) meet(state, true);
  if (!with_reserve([&] { return receive_announcement(state); })) return;  // after an error
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

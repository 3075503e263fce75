// SPDX-License-Identifier: BSD-3-Clause
// The member's side of an announcement: receives it early, meets the other members when all must have it, and puts it
// in force at its call.

#include "shim/engine/engine.hpp"
#include "shim/exchange/boundary_wait.hpp"
#include "shim/exchange/branch.hpp"
#include "shim/executor/executor.hpp"
#include "shim/guard.hpp"
#include "shim/log.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {

namespace {

/// Gives the announcement to the member if it has none. Returns false if none has arrived.
bool receive_announcement(CommState& state) {
  if (state.member.next_announcement()) return true;
  if (state.rank == 0) {
    state.member.take_announcement(state.tree.leadership->announcement, state.size);
    return true;
  }
  std::vector<char> message;
  if (!take_announcement(state, message)) return false;
  with_reserve([&] { state.member.take_announcement(std::span(message).subspan(sizeof state.identity), state.size); });
  return true;
}

}  // namespace

void receive_early_announcement(CommState& state) try {
  if (!state.usable() || state.tree.broken) return;
  pump_mail();
  try {
    if (!with_reserve([&] { return receive_announcement(state); })) return;
  } catch (const std::bad_alloc&) {
    return no_memory_left("a plan");  // it may be received already
  }
  const core::Announcement& heard = *state.member.next_announcement();
  if (heard.kind == core::Announcement::Kind::plan && state.dispatch.executor)
    state.dispatch.executor->prepare_schedules(state, heard.plan);
} catch (const std::bad_alloc&) {
  // The schedules are built inside their calls, not ahead of them.
}

void meet_members(CommState& state, bool waits) try {
  if (!state.usable()) return;
  const Guard program(Layer::program);  // its error handler
  const auto receive = [&] {
    return with_reserve([&] {
      exchange_mail();
      return receive_announcement(state);
    });
  };
  int all = receive();
  const MPI_Comm members = &state == job_world().state ? job_world().comm : state.comm;
  if (!waits) {
    // As a rule, all members have the announcement.
    if (PMPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, members) != MPI_SUCCESS) {
      state.tree.broken = true;
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
  if (rc != MPI_SUCCESS) state.tree.broken = true;
  if (waits) state.tree.waited += wait.so_far();
} catch (const std::bad_alloc&) {
  no_memory_left("a plan");
}

void apply_announcement(CommState& state, std::uint64_t n, bool waits) {
  if (!state.usable()) return;
  if (waits) meet_members(state, true);
  if (!with_reserve([&] { return receive_announcement(state); })) return;  // after an error
  if (state.rank == 0 && !state.member.next_announcement()->rest && !state.tree.broken) try {
      const LearnerLock lock(*state.tree.leadership);
      state.tree.leadership->learner->put_in_force(n);
    } catch (const std::bad_alloc&) {
      state.tree.break_without_memory();
    }
  if (!with_reserve([&] { return state.member.put_in_force(); })) return;
  with_reserve([&] { engine_plan(state); });
  if (state.dispatch.executor) state.dispatch.executor->change_plans();
}

}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// The states of the program's communicators, from the first collective to the end of the communicator.
#include "shim/call/communicators.hpp"

#include <memory>
#include <new>

#include "shim/call/idle.hpp"
#include "shim/call/record.hpp"
#include "shim/call/requests.hpp"
#include "shim/causes/waits_for.hpp"
#include "shim/engine/engine.hpp"
#include "shim/exchange/branch.hpp"
#include "shim/exchange/contexts.hpp"
#include "shim/exchange/exchange.hpp"
#include "shim/executor/executor.hpp"
#include "shim/guard.hpp"
#include "shim/state/clocks.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/process.hpp"
#include "shim/state/shared.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {
namespace {

void link_state(CommState* state) {
  const JobLock lock;
  state->next = lock->states;
  if (lock->states) lock->states->previous = state;
  lock->states = state;
}

void end_state(CommState* state) {
  idle_end(*state);
  forget_pending(state);
  forget_translation();
  remove_from_engine(*state);
  if (job_world().state == state) job_world().state = nullptr;
  if (active.load()) {
    attempt([&] {
      weigh_epoch(*state, job_clocks().common_now());
      end_last_epoch(*state);
      pump_mail();
      note_outcome(*state);
      retain_log(*state);
    });
    detach_branch(*state);
    attempt([&] {
      const JobLock lock;
      // Each snapshot contains these texts. A smaller limit would drop decisions of freed communicators from the
      // profile earlier, a larger one makes each snapshot take longer. Beyond, the profile omits the decisions of
      // communicators that are freed later.
      constexpr std::size_t kDecisionsKept = 256;
      if (state->tree.leadership)
        for (auto& text : state->tree.leadership->decisions)
          if (lock->past_decisions.size() < kDecisionsKept) lock->past_decisions.push_back(std::move(text));
    });
    if (state->context > 0 && state->context < kContexts) contexts().give_back(state->context);
  }
  {
    const JobLock lock;
    if (state->previous) state->previous->next = state->next;
    else if (lock->states == state) lock->states = state->next;
    if (state->next) state->next->previous = state->previous;
  }
  delete state;
}

/// Puts the state into an attribute, or for a communicator that this thread frees into `freed`.
CommState* make_state(MPI_Comm comm, bool freed) {
  auto state = with_reserve([] { return std::make_unique<CommState>(); });
  state->comm = comm;
  int inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  PMPI_Comm_size(comm, &state->size);
  PMPI_Comm_rank(comm, &state->rank);
  state->foreign = inter != 0;
  if (state->foreign) join_groups(*state);
  else if (state->size > 1) resolve_members(*state);
  if (!freed && PMPI_Comm_set_attr(comm, job_world().keyval, state.get()) != MPI_SUCCESS) throw std::bad_alloc();
  if (freed) {
    const JobLock lock;
    lock->freed_here(comm)->state = state.get();
  }
  link_state(state.get());
  return state.release();
}

}  // namespace

int on_communicator_end(MPI_Comm comm, int, void* attribute, void*) {
  auto* state = static_cast<CommState*>(attribute);
  {
    const JobLock lock;
    if (Shared::Freed* const freed = lock->freed_here(comm)) {
      freed->state = state;
      return MPI_SUCCESS;
    }
  }
  end_state(state);
  return MPI_SUCCESS;
}

CommState* state_of_any(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL || comm == job_world().comm) return nullptr;
  void* attribute = nullptr;
  int found = 0;
  if (PMPI_Comm_get_attr(comm, job_world().keyval, &attribute, &found) != MPI_SUCCESS) return nullptr;
  if (found) return static_cast<CommState*>(attribute);
  bool freed = false;
  CommState* state = existing_state(comm, freed);
  if (!state && !attempt([&] { state = make_state(comm, freed); }) && job_world().together)
    no_memory_left("the state of a communicator");
  return state;
}

Freeing::Freeing(MPI_Comm* comm) : handle_(comm), comm_(*comm) {
  const auto note = [&] {
    const JobLock lock;
    lock->freed.push_back({comm_, pthread_self()});
  };
  if (!attempt([&] { with_reserve(note); }) && job_world().together) no_memory_left("the end of a communicator");
}

Freeing::~Freeing() {
  CommState* state = nullptr;
  {
    const JobLock lock;
    if (const Shared::Freed* const found = lock->freed_here(comm_)) state = found->state;
    std::erase_if(lock->freed, [&](const Shared::Freed& one) {
      return one.comm == comm_ && pthread_equal(one.thread, pthread_self());
    });
  }
  if (!state) return;
  // A delete function may refuse, or throw an exception: then the communicator lives on.
  if (*handle_ == MPI_COMM_NULL || PMPI_Comm_set_attr(comm_, job_world().keyval, state) != MPI_SUCCESS)
    end_state(state);
}

}  // namespace latecomer::shim

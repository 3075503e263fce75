// SPDX-License-Identifier: BSD-3-Clause
// The states of the program's communicators, from the first collective to the end of the communicator.
#include "shim/dispatch/communicators.hpp"

#include <new>

#include "shim/causes/waits_for.hpp"
#include "shim/dispatch/engine/engine.hpp"
#include "shim/dispatch/exchange/branch.hpp"
#include "shim/dispatch/exchange/exchange.hpp"
#include "shim/dispatch/executor/executor.hpp"
#include "shim/dispatch/idle.hpp"
#include "shim/dispatch/requests.hpp"

namespace latecomer::shim {
namespace {

void link_state(CommState* state) {
  Job& j = job();
  const JobLock lock;
  state->next = j.states;
  if (j.states) j.states->previous = state;
  j.states = state;
}

}  // namespace

int on_communicator_end(MPI_Comm, int, void* attribute, void*) {
  auto* state = static_cast<CommState*>(attribute);
  Job& j = job();
  if (idle.state == state) idle_stop();
  forget_pending(state);
  forget_translation();
  unwatch(*state);
  if (j.world_state == state) j.world_state = nullptr;
  if (active.load()) {
    end_last_epoch(*state);
    pump_mail();
    note_outcome(*state);
    retain_log(*state);
    outlive(*state);
    {
      const JobLock lock;
      // Each snapshot contains these texts. A smaller limit would drop decisions of freed communicators from the
      // profile earlier, a larger one makes each snapshot take longer. Beyond, the profile omits the decisions of
      // communicators that are freed later.
      constexpr std::size_t kDecisionsKept = 256;
      if (state->leadership)
        for (auto& text : state->leadership->decisions)
          if (j.past_decisions.size() < kDecisionsKept) j.past_decisions.push_back(std::move(text));
    }
    if (state->context > 0 && state->context < kContexts) {
      const std::lock_guard lock(j.context_mutex);
      j.used_contexts[static_cast<std::size_t>(state->context) / 64] &= ~(std::uint64_t{1} << (state->context % 64));
    }
  }
  {
    const JobLock lock;
    if (state->previous) state->previous->next = state->next;
    else if (j.states == state) j.states = state->next;
    if (state->next) state->next->previous = state->previous;
  }
  delete state;
  return MPI_SUCCESS;
}

CommState* state_of_any(MPI_Comm comm) {
  Job& j = job();
  if (comm == MPI_COMM_NULL || comm == j.comm) return nullptr;
  void* attribute = nullptr;
  int found = 0;
  if (PMPI_Comm_get_attr(comm, j.keyval, &attribute, &found) != MPI_SUCCESS) return nullptr;
  if (found) return static_cast<CommState*>(attribute);
  auto* state = new (std::nothrow) CommState;
  if (!state) return nullptr;
  state->comm = comm;
  int inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  PMPI_Comm_size(comm, &state->size);
  PMPI_Comm_rank(comm, &state->rank);
  state->foreign = inter != 0;
  if (PMPI_Comm_set_attr(comm, j.keyval, state) != MPI_SUCCESS) {
    delete state;
    return nullptr;
  }
  link_state(state);
  if (state->foreign) join_groups(*state);
  else if (state->size > 1) resolve_members(*state);
  return state;
}

}  // namespace latecomer::shim

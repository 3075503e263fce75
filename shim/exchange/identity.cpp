// SPDX-License-Identifier: BSD-3-Clause
// The identity and the tag context of a communicator, on which its members agree.
#include <algorithm>
#include <numeric>

#include "core/base/text.hpp"
#include "shim/engine/engine.hpp"
#include "shim/exchange/boundary_wait.hpp"
#include "shim/exchange/branch.hpp"
#include "shim/exchange/contexts.hpp"
#include "shim/log.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/shared.hpp"
#include "shim/state/world.hpp"
#include "shim/waiting/courteous.hpp"

namespace latecomer::shim {

namespace {

/// The members of the group as ranks of MPI_COMM_WORLD. Frees it.
std::vector<Rank> ranks_of(MPI_Group group) {
  int size = 0;
  PMPI_Group_size(group, &size);
  std::vector<int> all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  std::vector<Rank> world(all.size());
  PMPI_Group_translate_ranks(group, size, all.data(), job_world().group, world.data());
  PMPI_Group_free(&group);
  return world;
}

/// Of a communicator whose calls have no number: the lowest of its ranks of the job stands for all.
void find_share(CommState& state, const std::vector<Rank>& members) {
  Rank lowest = job_world().rank;
  for (const Rank r : members)
    if (r != MPI_UNDEFINED) lowest = std::min(lowest, r);
  state.share = lowest == job_world().rank ? profiles::Tally::whole : profiles::Tally::beside;
}

}  // namespace

void join_groups(CommState& state) {
  MPI_Group group;
  PMPI_Comm_group(state.comm, &group);
  std::vector<Rank> members = ranks_of(group);
  PMPI_Comm_remote_group(state.comm, &group);
  const std::vector<Rank> others = ranks_of(group);
  members.insert(members.end(), others.begin(), others.end());
  state.size = static_cast<int>(members.size());
  find_share(state, members);
}

bool resolve_members(CommState& state) {
  if (!state.world.empty()) return !state.foreign;
  MPI_Group group;
  PMPI_Comm_group(state.comm, &group);
  state.world = ranks_of(group);
  std::uint64_t hash = static_cast<std::uint64_t>(state.size);
  Rank number = 0;
  for (const Rank r : state.world) {
    if (r == MPI_UNDEFINED) state.foreign = true;
    state.same_numbers &= r == number++;
    hash = core::mix64(hash ^ static_cast<std::uint64_t>(r));
  }
  if (state.foreign) find_share(state, state.world);
  // The number tells communicators of one group apart in the logs that are kept until the end, of which there are at
  // most kRetainedRecords. Derived: the groups take 3 MiB.
  constexpr std::size_t kMostGroups = kRetainedRecords;
  const JobLock lock;
  if (lock->creations.size() < kMostGroups || lock->creations.contains(hash))
    state.identity = core::mix64(hash + lock->creations[hash]++);
  return !state.foreign;
}

namespace {
/// MPI_Allreduce of words by MPI_BOR. `waits`: in the non-blocking form, so that a long wait can print a warning.
int unite(CommState& state, std::uint64_t* words, int count, bool waits) {
  if (!waits) return PMPI_Allreduce(MPI_IN_PLACE, words, count, MPI_UINT64_T, MPI_BOR, state.comm);
  MPI_Request request;
  int rc = PMPI_Iallreduce(MPI_IN_PLACE, words, count, MPI_UINT64_T, MPI_BOR, state.comm, &request);
  BoundaryWait wait(state, true);
  for (int done = 0; rc == MPI_SUCCESS && !done;)
    if (rc = PMPI_Test(&request, &done, MPI_STATUS_IGNORE); !done) wait.again();
  return rc;
}
}  // namespace

void take_place(CommState& state) {
  state.tree.place = core::place_in_tree(job_world().hosts_of(state.world), state.rank);
  if (state.rank == 0) become_leader(state);
  if (state.usable() && job_rules().policy.exchange == core::Exchange::epoch) make_branch(state);
  add_to_engine(state);
}

void identify_communicator(CommState& state, bool waits) {
  // The data that the members unite: the used contexts of all, the leader's number, and whether a member could not
  // offer its contexts.
  std::array<std::uint64_t, Contexts::kWords + 2> words;
  std::uint64_t& serial = words[Contexts::kWords];
  std::uint64_t& busy = words[Contexts::kWords + 1];
  // The numbers of a leader increase. So each number is the lowest one after some time, even if other processes go on
  // to agree on further communicators.
  std::uint64_t number = state.rank == 0 ? std::uint64_t{contexts().next_number()} << 32 |
                                               (static_cast<std::uint32_t>(job_world().rank) + 1)
                                         : 0;
  int context = kContexts;
  for (int attempt = 0;; ++attempt) {
    // With threads the first round only brings the members together, so that no context is offered to a member that has
    // not come yet. It also gives each communicator a number. All processes prefer the same number, so that
    // communicator gets a context within a few rounds. No lock is held during the wait, because a thread that frees a
    // communicator needs it.
    Contexts::Words used;
    const bool mine = contexts().offer_contexts(attempt > 0 ? number : 0, used);
    std::ranges::copy(used, words.begin());
    serial = attempt > 0 && state.rank != 0 ? 0 : number;
    busy = !mine;
    const int rc = unite(state, words.data(), static_cast<int>(words.size()), waits);
    if (rc != MPI_SUCCESS) {
      // This rank exchanges nothing more here. A rank without this error gets the communicator's next error.
      contexts().settle_round(number, mine, kContexts, true);
      state.tree.broken = true;
      state.context = kContexts;
      return;
    }
    number = serial;
    context = kContexts;
    for (int c = 0; c < kContexts && context == kContexts && busy == 0; ++c)
      if ((words[static_cast<std::size_t>(c) / 64] >> (c % 64) & 1) == 0) context = c;
    contexts().settle_round(number, mine, context, busy == 0);
    if (busy == 0) break;  // on all members: the union is the same
    // 10 to 130 us. Different ranks take different naps, so that their threads do not all try at the same time.
    const timespec nap{0, 10'000 * (1 + (job_world().rank * 7 + attempt) % 13)};
    if (attempt > 0) nanosleep(&nap, nullptr);
  }
  {
    const JobLock lock;
    state.context = context;
    state.identity = core::mix64(number);
  }
  if (!state.usable()) warn("no tag context is free: a communicator of %d ranks stays native", state.size);
  take_place(state);
}

}  // namespace latecomer::shim

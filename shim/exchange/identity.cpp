// SPDX-License-Identifier: BSD-3-Clause
// The identity and the tag context of a communicator, on which its members agree.
#include <algorithm>
#include <numeric>

#include "core/base/text.hpp"
#include "shim/engine/engine.hpp"
#include "shim/exchange/branch.hpp"
#include "shim/exchange/messages.hpp"
#include "shim/log.hpp"
#include "shim/waiting/courteous.hpp"

namespace latecomer::shim {

using namespace exchange;

namespace {

/// The members of the group as ranks of MPI_COMM_WORLD. Frees it.
std::vector<Rank> ranks_of(MPI_Group group) {
  int size = 0;
  PMPI_Group_size(group, &size);
  std::vector<int> all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  std::vector<Rank> world(all.size());
  PMPI_Group_translate_ranks(group, size, all.data(), job().world_group, world.data());
  PMPI_Group_free(&group);
  return world;
}

/// Of a communicator whose calls have no number: the lowest of its ranks of the job stands for all.
void find_share(CommState& state, const std::vector<Rank>& members) {
  Rank lowest = job().rank;
  for (const Rank r : members)
    if (r != MPI_UNDEFINED) lowest = std::min(lowest, r);
  state.share = lowest == job().rank ? profiles::Tally::whole : profiles::Tally::beside;
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
  Job& j = job();
  MPI_Group group;
  PMPI_Comm_group(state.comm, &group);
  state.world = ranks_of(group);
  std::uint64_t hash = static_cast<std::uint64_t>(state.size);
  for (const Rank r : state.world) {
    if (r == MPI_UNDEFINED) state.foreign = true;
    hash = core::mix64(hash ^ static_cast<std::uint64_t>(r));
  }
  if (state.foreign) find_share(state, state.world);
  // The number tells communicators of one group apart in the logs that are kept until the end, of which there are at
  // most kRetainedRecords. Derived: the groups take 3 MiB.
  constexpr std::size_t kMostGroups = kRetainedRecords;
  const JobLock lock;
  if (j.creations.size() < kMostGroups || j.creations.contains(hash))
    state.identity = core::mix64(hash + j.creations[hash]++);
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
  Job& j = job();
  state.place = core::place_in_tree(j.hosts_of(state.world), state.rank);
  if (state.rank == 0) lead(state);
  if (state.usable() && j.policy.exchange == core::Exchange::epoch) grow(state);
  watch(state);
}

void identify(CommState& state, bool waits) {
  Job& j = job();
  constexpr int kWords = kContexts / 64;
  // Used contexts of all members, the leader's serial number, and whether a member could not offer its contexts.
  std::array<std::uint64_t, kWords + 2> words;
  std::uint64_t& serial = words[kWords];
  std::uint64_t& busy = words[kWords + 1];
  // The numbers of a leader increase. So each number is the lowest one after some time, even if other processes go on
  // to agree on further communicators.
  std::uint64_t number =
      state.rank == 0 ? std::uint64_t{++j.identities} << 32 | (static_cast<std::uint32_t>(j.rank) + 1) : 0;
  int context = kContexts;
  for (int attempt = 0;; ++attempt) {
    // One agreement at a time may take contexts of this process. With threads the first round only brings the members
    // together, so that no context is offered to a member that has not come yet. It also gives each communicator a
    // number. All processes prefer the same number, so that communicator gets a context within a few rounds. No lock is
    // held during the wait, because a thread that frees a communicator needs it.
    bool mine = !j.threads;
    {
      const std::lock_guard lock(j.context_mutex);
      if (j.threads && attempt > 0) {
        j.agreeing.insert(number);
        mine = !j.offering && *j.agreeing.begin() == number;
      }
      j.offering = j.offering || mine;
      for (int w = 0; w < kWords; ++w)
        words[static_cast<std::size_t>(w)] = j.used_contexts[static_cast<std::size_t>(w)];
    }
    serial = attempt > 0 && state.rank != 0 ? 0 : number;
    busy = !mine;
    const int rc = unite(state, words.data(), kWords + 2, waits);
    if (rc != MPI_SUCCESS) {
      // This rank exchanges nothing more here. A rank without this error gets the communicator's next error.
      const std::lock_guard lock(j.context_mutex);
      if (mine) j.offering = false;
      j.agreeing.erase(number);
      state.broken = true;
      state.context = kContexts;
      return;
    }
    number = serial;
    context = kContexts;
    for (int c = 0; c < kContexts && context == kContexts && busy == 0; ++c)
      if ((words[static_cast<std::size_t>(c) / 64] >> (c % 64) & 1) == 0) context = c;
    {
      const std::lock_guard lock(j.context_mutex);
      if (context < kContexts)
        j.used_contexts[static_cast<std::size_t>(context) / 64] |= std::uint64_t{1} << (context % 64);
      if (mine) j.offering = false;
      if (busy == 0) j.agreeing.erase(number);
    }
    if (busy == 0) break;  // on all members: the union is the same
    // 10 to 130 us. Different ranks take different naps, so that their threads do not all try at the same time.
    const timespec nap{0, 10'000 * (1 + (j.rank * 7 + attempt) % 13)};
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

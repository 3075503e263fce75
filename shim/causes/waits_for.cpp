// SPDX-License-Identifier: BSD-3-Clause
// Translates the rank of a message into a rank of MPI_COMM_WORLD, and finds the messages of a completion call.
#include "shim/causes/waits_for.hpp"

#include <memory>
#include <new>

#include "shim/guard.hpp"
#include "shim/state/job.hpp"

namespace latecomer::shim {

namespace {

constinit StartedMessages started;

/// The ranks of MPI_COMM_WORLD that a communicator's messages may name: of the remote group in an inter-communicator.
struct Members {
  std::vector<Rank> world;  ///< MPI_UNDEFINED: of another MPI_COMM_WORLD
};

int forget_members(MPI_Comm, int, void* members, void*) {
  delete static_cast<Members*>(members);
  return MPI_SUCCESS;
}

/// Members of a communicator without a CommState: no collective ran on it. It must not get a CommState here, because
/// all its ranks create that at the same collective.
const Members* members_of(MPI_Comm comm) {
  if (job().world_group == MPI_GROUP_NULL) return nullptr;
  static int keyval = [] {
    int made = MPI_KEYVAL_INVALID;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget_members, &made, nullptr);
    return made;
  }();
  void* attribute = nullptr;
  int found = 0, inter = 0, size = 0;
  if (keyval == MPI_KEYVAL_INVALID || PMPI_Comm_get_attr(comm, keyval, &attribute, &found) != MPI_SUCCESS)
    return nullptr;
  if (found) return static_cast<const Members*>(attribute);
  MPI_Group group = MPI_GROUP_NULL;
  PMPI_Comm_test_inter(comm, &inter);
  if ((inter ? PMPI_Comm_remote_group(comm, &group) : PMPI_Comm_group(comm, &group)) != MPI_SUCCESS) return nullptr;
  PMPI_Group_size(group, &size);
  auto members = std::make_unique<Members>();
  std::vector<int> all(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) all[static_cast<std::size_t>(i)] = i;
  members->world.resize(all.size(), MPI_UNDEFINED);
  PMPI_Group_translate_ranks(group, size, all.data(), job().world_group, members->world.data());
  PMPI_Group_free(&group);
  if (PMPI_Comm_set_attr(comm, keyval, members.get()) != MPI_SUCCESS) return nullptr;
  return members.release();
}

/// Another process's rank in MPI_COMM_WORLD; negative if it has none, or if `rank` lies outside the communicator.
Rank peer_of(MPI_Comm comm, int rank) {
  if (rank < 0) return -1;
  if (comm == MPI_COMM_WORLD) return rank < job().size ? rank : MPI_UNDEFINED;
  if (comm == MPI_COMM_SELF) return job().rank;
  void* attribute = nullptr;
  int found = 0;
  const std::vector<Rank>* world = nullptr;
  if (PMPI_Comm_get_attr(comm, job().keyval, &attribute, &found) == MPI_SUCCESS && found)
    if (const auto* state = static_cast<const CommState*>(attribute); !state->foreign) world = &state->world;
  if (!world || world->empty()) {
    const Members* members = members_of(comm);
    if (!members) return MPI_UNDEFINED;
    world = &members->world;
  }
  return static_cast<std::size_t>(rank) < world->size() ? (*world)[static_cast<std::size_t>(rank)] : MPI_UNDEFINED;
}

}  // namespace

[[gnu::noinline, gnu::cold]] void waited_for(MPI_Comm comm, int rank, Nanoseconds waited) try {
  if (const Rank peer = peer_of(comm, rank); peer >= 0 && peer != job().rank) sampler.wait_for(peer, waited);
} catch (const std::bad_alloc&) {
  // Without memory for the members, the time counts without a rank.
}

[[gnu::noinline, gnu::cold]] void note_started(MPI_Request request, MPI_Comm comm, int rank, bool receives,
                                               bool persistent) try {
  started.note({request, persistent ? 0 : mpi_time.sampled, peer_of(comm, rank), receives});
} catch (const std::bad_alloc&) {
}

Awaited::Awaited(int count, const MPI_Request* requests) {
  for (int i = 0; i < count && found_ < kMost; ++i)
    if (const StartedMessage* message = started.find(requests[i], mpi_time.sampled)) {
      receives_ += message->receives;
      at_[found_] = i, messages_[found_++] = *message;
    }
}

void Awaited::all(Nanoseconds waited) const {
  // MPI does not say which message came last, so the call waits for all of them at the same time: for the received ones
  // where there are some.
  for (int k = 0; k < found_; ++k)
    if (messages_[k].receives == (receives_ > 0)) one(waited, at_[k]);
}

void Awaited::one(Nanoseconds waited, int index) const {
  for (int k = 0; k < found_; ++k)
    if (const Rank peer = messages_[k].peer; at_[k] == index && peer >= 0 && peer != job().rank)
      sampler.wait_for(peer, waited);
}

}  // namespace latecomer::shim

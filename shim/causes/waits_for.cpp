// SPDX-License-Identifier: BSD-3-Clause
// Translates the rank of a message into a rank of MPI_COMM_WORLD, and finds the messages of a completion call.
#include "shim/causes/waits_for.hpp"

#include <memory>
#include <new>

#include "shim/guard.hpp"
#include "shim/state/job.hpp"

namespace latecomer::shim {

constinit StartedMessages started;

namespace {

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

Rank world_rank(MPI_Comm comm, int rank) {
  if (comm == MPI_COMM_WORLD) return rank;
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
  if (comm == MPI_COMM_NULL || rank < 0) return;
  const Rank of_world = world_rank(comm, rank);
  if (of_world >= 0 && of_world != job().rank) sampler.wait_for(of_world, waited);
} catch (const std::bad_alloc&) {
  // Without memory for the members, the time counts without a rank.
}

Awaited::Awaited(int count, const MPI_Request* requests) {
  for (int i = 0; i < count && found_ < kMost; ++i)
    if (const StartedMessage* message = started.find(requests[i])) {
      receives_ += message->receives;
      at_[found_] = i, messages_[found_++] = *message;
    }
}

void Awaited::all(Nanoseconds waited, const MPI_Status* statuses) const {
  // MPI does not say which message came last, so the call waits for all of them at the same time: for the received ones
  // where there are some.
  for (int k = 0; k < found_; ++k)
    if (messages_[k].receives == (receives_ > 0)) one(waited, at_[k], statuses ? statuses + at_[k] : nullptr);
}

void Awaited::one(Nanoseconds waited, int index, const MPI_Status* status) const {
  for (int k = 0; k < found_; ++k)
    if (at_[k] == index) {
      const StartedMessage& m = messages_[k];
      waited_for(m.comm, m.rank == MPI_ANY_SOURCE && status ? status->MPI_SOURCE : m.rank, waited);
    }
}

}  // namespace latecomer::shim

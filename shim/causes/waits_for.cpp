// SPDX-License-Identifier: BSD-3-Clause
// Translates the rank of a message into a rank of MPI_COMM_WORLD, and finds the messages of a completion call.
#include "shim/causes/waits_for.hpp"

#include <memory>
#include <new>

#include "shim/guard.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {

constinit StartedMessages started_messages;
constinit std::atomic<MPI_Comm> translated{};

namespace {

/// The ranks of MPI_COMM_WORLD that a communicator's messages may name: of the remote group in an inter-communicator.
struct NamedRanks {
  std::vector<Rank> world;  ///< MPI_UNDEFINED: of another MPI_COMM_WORLD
};

int forget_members(MPI_Comm, int, void* members, void*) {
  forget_translation();
  delete static_cast<NamedRanks*>(members);
  return MPI_SUCCESS;
}

/// Members of a communicator without a CommState: no collective ran on it. It must not get a CommState here, because
/// all its ranks create their CommState at the same collective.
const NamedRanks* members_of(MPI_Comm comm) {
  if (job_world().group == MPI_GROUP_NULL) return nullptr;
  static int keyval = [] {
    int made = MPI_KEYVAL_INVALID;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget_members, &made, nullptr);
    return made;
  }();
  void* attribute = nullptr;
  int found = 0, inter = 0, size = 0;
  if (keyval == MPI_KEYVAL_INVALID || PMPI_Comm_get_attr(comm, keyval, &attribute, &found) != MPI_SUCCESS)
    return nullptr;
  if (found) return static_cast<const NamedRanks*>(attribute);
  MPI_Group group = MPI_GROUP_NULL;
  PMPI_Comm_test_inter(comm, &inter);
  if ((inter ? PMPI_Comm_remote_group(comm, &group) : PMPI_Comm_group(comm, &group)) != MPI_SUCCESS) return nullptr;
  PMPI_Group_size(group, &size);
  auto members = std::make_unique<NamedRanks>();
  std::vector<int> all(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) all[static_cast<std::size_t>(i)] = i;
  members->world.resize(all.size(), MPI_UNDEFINED);
  PMPI_Group_translate_ranks(group, size, all.data(), job_world().group, members->world.data());
  PMPI_Group_free(&group);
  if (PMPI_Comm_set_attr(comm, keyval, members.get()) != MPI_SUCCESS) return nullptr;
  return members.release();
}

/// The ranks of MPI_COMM_WORLD that the communicator's messages may name. nullptr: unknown, or no memory.
const std::vector<Rank>* translation(MPI_Comm comm) try {
  bool freed = false;
  if (const CommState* state = existing_state(comm, freed); state && !state->foreign && !state->world.empty())
    return &state->world;
  if (freed) return nullptr;  // no attribute may be added
  const NamedRanks* members = members_of(comm);
  return members ? &members->world : nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

const std::vector<Rank>* last_translation = nullptr;  // of `translated`, by the watched thread

}  // namespace

Rank peer_of(MPI_Comm comm, int rank) {
  if (rank < 0) return -1;
  if (comm == MPI_COMM_WORLD) return rank < job_world().size ? rank : MPI_UNDEFINED;
  if (comm != translated.load(std::memory_order_relaxed)) [[unlikely]] {
    const std::vector<Rank>* world = translation(comm);
    if (!world) return MPI_UNDEFINED;
    last_translation = world;
    translated.store(comm, std::memory_order_relaxed);
  }
  const auto at = static_cast<std::size_t>(rank);
  return at < last_translation->size() ? (*last_translation)[at] : MPI_UNDEFINED;
}

[[gnu::noinline, gnu::cold]] void waited_for(MPI_Comm comm, int rank, Nanoseconds waited) {
  if (const Rank peer = peer_of(comm, rank); peer >= 0 && peer != job_world().rank) sampler.wait_for(peer, waited);
}

Awaited::Awaited(int count, const MPI_Request* requests, bool completes) : completes_(completes) {
  for (int i = 0; i < count && found_ < kMost; ++i)
    if (StartedMessage* started = started_messages.find_message(requests[i])) {
      receives_ |= started->receives;
      messages_[static_cast<std::size_t>(found_++)] = {started, requests[i], i};
    }
}

void Awaited::complete_message(const Message& message, bool awaited) const {
  StartedMessage& started = *message.started;
  // Two of the call's requests may have had the same place.
  if (started.request != message.request) return;
  if (awaited && waited_ > 0 && started.peer >= 0 && started.peer != job_world().rank)
    sampler.wait_for(started.peer, waited_);
  if (completes_ && !started.persistent) started.request = {};
}

void Awaited::complete_all() const {
  // MPI does not tell which message came last. So the wait counts for all received messages, or for all sent messages
  // if the call has no receive.
  for (const Message& m : found()) complete_message(m, m.started->receives == receives_);
}

void Awaited::complete_one(int index) const {
  for (const Message& m : found())
    if (m.index == index) complete_message(m, true);
}

}  // namespace latecomer::shim

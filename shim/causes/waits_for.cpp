// SPDX-License-Identifier: BSD-3-Clause
// Translates the rank of a message into a rank of MPI_COMM_WORLD, and finds the messages of a completion call.
#include "shim/causes/waits_for.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "shim/guard.hpp"
#include "shim/state/clocks.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/cost.hpp"
#include "shim/state/not_counted.hpp"
#include "shim/state/process.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {

constinit StartedMessages started_messages;
constinit profiles::PeerTable peer_table;
constinit std::atomic<std::uint64_t> ended_communicators{0};

namespace {

/// The ranks of MPI_COMM_WORLD that a communicator's messages may name: of the remote group in an inter-communicator.
struct NamedRanks {
  std::vector<Rank> world;   ///< MPI_UNDEFINED: of another MPI_COMM_WORLD
  bool same_numbers = true;  ///< as CommState::same_numbers
};

NamedRanks ranks_of(MPI_Group group) {
  NamedRanks out;
  int size = 0;
  PMPI_Group_size(group, &size);
  std::vector<int> all(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) all[static_cast<std::size_t>(i)] = i;
  out.world.resize(all.size(), MPI_UNDEFINED);
  PMPI_Group_translate_ranks(group, size, all.data(), job_world().group, out.world.data());
  for (int i = 0; i < size; ++i) out.same_numbers &= out.world[static_cast<std::size_t>(i)] == i;
  return out;
}

int forget_members(MPI_Comm, int, void* members, void*) {
  forget_translation();
  delete static_cast<NamedRanks*>(members);
  return MPI_SUCCESS;
}

/// Held by the thread that looks ranks up for the first time. No thread waits for it, because a callback of MPI may
/// call MPI with a lock of MPI held: a thread that does not get it does not know the ranks.
std::mutex looking_up;

/// Members of a communicator without a CommState: no collective ran on it. It must not get a CommState here, because
/// all its ranks create their CommState at the same collective.
const NamedRanks* members_of(MPI_Comm comm) {
  static constinit std::atomic<int> shared_keyval{MPI_KEYVAL_INVALID};
  if (job_world().group == MPI_GROUP_NULL) return nullptr;
  int keyval = shared_keyval.load();
  if (keyval == MPI_KEYVAL_INVALID) {
    int made = MPI_KEYVAL_INVALID;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget_members, &made, nullptr);
    if (shared_keyval.compare_exchange_strong(keyval, made)) keyval = made;  // otherwise nobody uses this one
    if (keyval == MPI_KEYVAL_INVALID) return nullptr;
  }
  void* attribute = nullptr;
  int found = 0, inter = 0;
  const auto is_known = [&] { return PMPI_Comm_get_attr(comm, keyval, &attribute, &found) == MPI_SUCCESS && found; };
  if (is_known()) return static_cast<const NamedRanks*>(attribute);
  const std::unique_lock only(looking_up, std::try_to_lock);
  if (!only) return nullptr;
  if (is_known()) return static_cast<const NamedRanks*>(attribute);
  MPI_Group group = MPI_GROUP_NULL;
  PMPI_Comm_test_inter(comm, &inter);
  if ((inter ? PMPI_Comm_remote_group(comm, &group) : PMPI_Comm_group(comm, &group)) != MPI_SUCCESS) return nullptr;
  auto members = std::make_unique<NamedRanks>(ranks_of(group));
  PMPI_Group_free(&group);
  if (PMPI_Comm_set_attr(comm, keyval, members.get()) != MPI_SUCCESS) return nullptr;
  return members.release();
}

struct Translation {
  const std::vector<Rank>* world = nullptr;  ///< nullptr: unknown, or no memory
  bool same_numbers = false;
};

/// The ranks of MPI_COMM_WORLD that the communicator's messages may name.
Translation translation(MPI_Comm comm) try {
  bool freed = false;
  if (const CommState* state = existing_state(comm, freed); state && !state->foreign && !state->world.empty())
    return {&state->world, state->same_numbers};
  if (freed) return {};  // no attribute may be added
  const NamedRanks* members = members_of(comm);
  return members ? Translation{&members->world, members->same_numbers} : Translation{};
} catch (const std::bad_alloc&) {
  return {};
}

/// The ranks of a window in MPI_COMM_WORLD. The thread that holds `looking_up` fills it.
struct WindowRanks {
  std::atomic<MPI_Win> win{};  ///< none: free
  NamedRanks* ranks = nullptr;
  Rank rank_of(int rank) const {
    if (ranks->same_numbers) return rank;
    const auto at = static_cast<std::size_t>(rank);
    return at < ranks->world.size() ? ranks->world[at] : MPI_UNDEFINED;
  }
  /// Returns false without memory.
  [[gnu::noinline]] bool fill(MPI_Win of) {
    const KeepErrno keep;
    MPI_Group group = MPI_GROUP_NULL;
    if (job_world().group == MPI_GROUP_NULL || PMPI_Win_get_group(of, &group) != MPI_SUCCESS) return false;
    const Outcome done = attempt([&] {
      if (!ranks) ranks = new NamedRanks;
      *ranks = ranks_of(group);
    });
    PMPI_Group_free(&group);
    if (done) win.store(of, std::memory_order_release);
    return static_cast<bool>(done);
  }
};
/// Chosen: a program has few windows at a time. The ranks of others are not known. Derived: 1 KiB.
constexpr std::size_t kWindows = 64;
constinit std::array<WindowRanks, kWindows> windows;

/// Lists the ranks of `comm` from which a collective of neighbours receives. If it receives nothing, those to which it
/// sends.
void list_neighbours(MPI_Comm comm, std::vector<int>& from) {
  std::vector<int> to, weights;
  from.clear();
  int kind = MPI_UNDEFINED, n = 0, more = 0, weighted = 0, rank = 0;
  if (PMPI_Topo_test(comm, &kind) != MPI_SUCCESS) return;
  if (kind == MPI_CART && PMPI_Cartdim_get(comm, &n) == MPI_SUCCESS) {
    from.resize(2 * static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) PMPI_Cart_shift(comm, i, 1, &from[2u * i], &from[2u * i + 1]);
  } else if (kind == MPI_GRAPH && PMPI_Comm_rank(comm, &rank) == MPI_SUCCESS &&
             PMPI_Graph_neighbors_count(comm, rank, &n) == MPI_SUCCESS) {
    from.resize(static_cast<std::size_t>(n));
    PMPI_Graph_neighbors(comm, rank, n, from.data());
  } else if (kind == MPI_DIST_GRAPH && PMPI_Dist_graph_neighbors_count(comm, &n, &more, &weighted) == MPI_SUCCESS) {
    from.resize(static_cast<std::size_t>(n));
    to.resize(static_cast<std::size_t>(more));
    weights.resize(from.size() + to.size());
    PMPI_Dist_graph_neighbors(comm, n, from.data(), weights.data(), more, to.data(), weights.data() + n);
    if (from.empty()) from = to;
  }
}

/// What this thread translated last.
struct LastTranslation {
  MPI_Comm comm{};
  std::uint64_t ended = 0;  ///< as `ended_communicators` then
  Translation its;
  bool holds(MPI_Comm now) const { return comm == now && ended == ended_communicators.load(std::memory_order_relaxed); }
};
constinit thread_local LastTranslation last;

/// A wait that is longer pays for looking the rank of a window up. Chosen: 50 times as long (measured, 0.4 us).
constexpr Nanoseconds kPaysForGroup = 20'000;
/// The part of the policy's budget for looking at messages that have come already. Chosen: as for the others' timing.
constexpr double kForLooking = 0.25;
Nanoseconds looked = 0;  // time that wait_in_turn() took
/// MPI_Waitall is called after so long, whether all messages are there or not. Open MPI's ends with the first request
/// that fails, which a look does not tell. Chosen: a program hardly notices that it learns of a failure so late.
constexpr Nanoseconds kLongest = 100'000'000;

}  // namespace

Rank peer_of(MPI_Comm comm, int rank) {
  if (rank < 0) return -1;
  if (comm == MPI_COMM_WORLD) return rank < job_world().size ? rank : MPI_UNDEFINED;
  if (!last.holds(comm)) [[unlikely]] {
    if (comm == MPI_COMM_NULL) return MPI_UNDEFINED;
    const std::uint64_t ended = ended_communicators.load(std::memory_order_relaxed);
    const Translation its = translation(comm);
    if (!its.world) return MPI_UNDEFINED;
    last = {comm, ended, its};
  }
  const auto at = static_cast<std::size_t>(rank);
  return at < last.its.world->size() ? (*last.its.world)[at] : MPI_UNDEFINED;
}

Rank Source::rank_of(int source) const {
  const bool looks_up = comm_ == MPI_COMM_WORLD || last.holds(comm_) || !job_process().threads;
  return looks_up ? peer_of(comm_, source) : MPI_UNDEFINED;
}

Rank source_of_start(MPI_Comm comm, int from) {
  if (from != MPI_ANY_SOURCE) return peer_of(comm, from);
  if (comm == MPI_COMM_WORLD) return kAnyRank;
  // The communicator may be gone when the message comes, so its ranks cannot be translated then.
  return peer_of(comm, 0) == 0 && last.its.same_numbers ? kAnyRank : -1;
}

void waited_for(Rank peer, const Wait& wait) {
  if (peer < 0 || peer == job_world().rank) return;
  wait.site->peers.add(peer, wait.time);
  if (!mpi_time.watched) return;
  sampler.wait_for(peer, wait.time);
  peer_table.of(peer).waited += wait.time;
}

Rank target_of(MPI_Win win, int rank) {
  if (rank < 0) return -1;
  const std::size_t first = bits_of(win) * 0x9e3779b97f4a7c15ull >> 32;
  for (std::size_t i = 0; i < kWindows; ++i) {
    WindowRanks& there = windows[(first + i) % kWindows];
    const MPI_Win held = there.win.load(std::memory_order_acquire);
    if (held == win) return there.rank_of(rank);
    if (held != MPI_Win{}) continue;
    const std::unique_lock only(looking_up, std::try_to_lock);
    if (!only) return -1;
    if (there.win.load(std::memory_order_relaxed) == MPI_Win{} && there.fill(win)) return there.rank_of(rank);
  }
  return -1;
}

void forget_window(MPI_Win win) {
  for (WindowRanks& there : windows)
    if (there.win.load(std::memory_order_relaxed) == win) there.win.store({}, std::memory_order_release);
}

namespace {

/// The ranks of list_neighbours() in MPI_COMM_WORLD, without this process, each one once.
std::vector<Rank> neighbours_in_world(MPI_Comm comm) {
  std::vector<Rank> ranks;
  list_neighbours(comm, ranks);
  for (Rank& one : ranks) one = peer_of(comm, one);
  std::erase_if(ranks, [](Rank one) { return one < 0 || one == job_world().rank; });
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

/// Lists of neighbours, which stay: a communicator may end before its requests. Communicators with the same list share
/// it. Chosen: a process has few different lists.
constinit std::array<std::atomic<const std::vector<Rank>*>, 64> neighbour_lists{};

/// The number of the list of `comm`; negative: not known.
int number_of_neighbours(MPI_Comm comm) {
  const KeepErrno keep;
  int number = -1;
  attempt([&] {
    std::vector<Rank> ranks = neighbours_in_world(comm);
    const std::unique_lock only(looking_up, std::try_to_lock);
    for (std::size_t i = 0; only && number < 0 && i < neighbour_lists.size(); ++i) {
      const std::vector<Rank>* const there = neighbour_lists[i].load(std::memory_order_relaxed);
      if (!there) neighbour_lists[i].store(new std::vector<Rank>(std::move(ranks)), std::memory_order_release);
      if (!there || *there == ranks) number = static_cast<int>(i);
    }
  });
  return number;
}

/// What this thread looked up last.
struct LastNeighbours {
  MPI_Comm comm{};
  std::uint64_t ended = 0;  ///< as `ended_communicators` then
  int number = -1;
};
constinit thread_local LastNeighbours last_neighbours;

}  // namespace

[[gnu::noinline, gnu::cold]] void waited_for_neighbours(MPI_Comm comm, const Wait& wait) {
  if (wait.time < kPaysForGroup) return;
  const KeepErrno keep;
  attempt([&] {
    const std::vector<Rank> ranks = neighbours_in_world(comm);
    for (const Rank one : ranks) waited_for(one, wait);
    if (ranks.size() > 1) core::add_shared(wait.site->together, wait.time);
  });
}

void note_neighbours(MPI_Comm comm, MPI_Request request) {
  if (!timing.load(std::memory_order_relaxed)) return;
  if (!has_sites()) return declined.add(profiles::Uncounted::neighbours);
  const std::uint64_t ended = ended_communicators.load(std::memory_order_relaxed);
  LastNeighbours& known = last_neighbours;
  if (known.number < 0 || known.comm != comm || known.ended != ended) known = {comm, ended, number_of_neighbours(comm)};
  if (known.number < 0) return declined.add(profiles::Uncounted::neighbours);
  started_messages.note_message(
      {request, StartedMessage::kNeighbours, true, false, static_cast<std::uint16_t>(known.number)});
}

namespace {

/// Whether a look at a request that has failed calls no function of the program. MPICH's MPI_Request_get_status calls
/// an error handler then, of MPI_COMM_WORLD or of MPI_COMM_SELF. If that is the fatal one, the job ends as in
/// MPI_Waitall.
bool may_look_at_failures() {
#ifdef OPEN_MPI
  return true;
#else
  for (const MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) {
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    if (PMPI_Comm_get_errhandler(comm, &handler) != MPI_SUCCESS) return false;
    if (handler == MPI_ERRORS_ARE_FATAL || handler == MPI_ERRORS_RETURN) continue;
    PMPI_Errhandler_free(&handler);
    return false;
  }
  return true;
#endif
}

}  // namespace

bool may_wait_in_turn(int count, const MPI_Request* requests) {
  const core::Policy& policy = job_rules().policy;
  if (!policy.last_message || job_process().threads) return false;
  int messages = 0;
  for (int i = 0; i < count; ++i) {
    if (requests[i] == MPI_REQUEST_NULL) continue;
    const StartedMessage message = started_messages.find_message(requests[i]);
    if (message.request != requests[i] || message.peer == StartedMessage::kNeighbours) return false;
    ++messages;
  }
  const bool pays =
      !policy.budget ||
      static_cast<double>(looked) <= kForLooking * *policy.budget * static_cast<double>(now() - job_process().started);
  return messages > 1 && pays && may_look_at_failures();
}

StartedMessage wait_in_turn(int count, const MPI_Request* requests) {
  Nanoseconds mark = now();
  const Nanoseconds until = mark + kLongest;
  StartedMessage last;
  bool good = true;
  MPI_Status status;
  const auto is_here = [&](MPI_Request request) {
    int here = 0;
    if (request != MPI_REQUEST_NULL) good = PMPI_Request_get_status(request, &here, &status) == MPI_SUCCESS;
    return here != 0 || request == MPI_REQUEST_NULL;
  };
  const auto message = [&](int i) { return started_messages.find_message(requests[i]); };
  for (int i = 0; good && i < count && mark < until; ++i) {
    if (is_here(requests[i]) || !good) continue;
    last = message(i);
    show_awaited(last.peer);
    bool here = false;
    while (good && !(here = is_here(requests[i])) && mark < until) mark = now();
    if (last.peer == kAnyRank) last.peer = here && good ? status.MPI_SOURCE : -1;
    mark = now();
    // A message that comes so late is the last one if none of another rank is missing.
    for (int k = i + 1; good && mark >= until && k < count; ++k)
      if (!is_here(requests[k]) && message(k).peer != last.peer) last = {};
  }
  const Nanoseconds took = now() - mark;  // the looks behind the last wait
  looked += took;
  spent.add(profiles::CostOf::messages, took);
  return good ? last : StartedMessage{};
}

void StartedMessages::put_in_full_set(const StartedMessage& message) {
  if (bits_ < kMostBits) {
    const KeepErrno keep;
    if (Set* larger = new (std::nothrow) Set[std::size_t{1} << (bits_ + 1)]) {
      const std::span<Set> all(sets_, std::size_t{1} << bits_);
      sets_ = larger;
      ++bits_;
      for (const Set& set : all)
        for (const StartedMessage& one : set) put_message(one);  // its set has half as many
      if (all.data() != first_) delete[] all.data();
      return put_message(message);
    }
  }
  replace(set_of(message.request)[turn_++ % Set{}.size()], message);
}

bool StartedMessages::note_persistent(StartedMessage message, const PersistentMessage& persistent) {
  const KeepErrno keep;
  const auto lock = lock_if_threads();
  in_use_.store(true, std::memory_order_relaxed);
  if (StartedMessage* there = find(message.request)) replace(*there, {});  // MPI uses the handle again
  const std::size_t room = persistent_room_;
  std::size_t tried = 0, place = 0;
  for (; tried < room; ++tried)
    if (place = (persistent_next_ + tried) % room; !persistent_[place].used) break;
  if (tried == room) {
    const std::size_t larger = std::max<std::size_t>(64, 2 * room);
    auto* made = larger > kMostPersistent ? nullptr : new (std::nothrow) PersistentMessage[larger];
    if (!made) return false;
    std::copy_n(persistent_, room, made);
    delete[] std::exchange(persistent_, made);
    persistent_room_ = larger;
    place = room;
  }
  persistent_next_ = place + 1;
  persistent_[place] = persistent;
  persistent_[place].used = true;
  message.persistent = true;
  message.kept = static_cast<std::uint16_t>(place);
  put_message(message);
  return true;
}

Awaited::Awaited(int count, const MPI_Request* requests) : count_(count) {
  for (int i = 0; i < count; ++i) {
    if (found_ == kMost) {
      started_messages.forget_completed(count - i, requests + i);
      break;
    }
    const StartedMessage started = started_messages.find_message(requests[i]);
    if (requests[i] == MPI_REQUEST_NULL || started.request != requests[i]) continue;
    receives_ |= started.receives;
    if (started.peer == StartedMessage::kNeighbours) {
      for (const Rank one : *neighbour_lists[started.kept].load(std::memory_order_acquire))
        add_message({started.request, one, i, true, false, 0});
      continue;
    }
    keeps_ |= started.kept != 0;
    add_message({started.request, started.peer, i, started.receives, started.persistent, started.kept});
  }
  if (found_ == 1) show_awaited(messages_[0].peer);
}

void Awaited::begin_kept(const CallPlace& place) {
  if (!keeps_) return;
  place_ = &place;
  begin_ = job_clocks().common_now();
}

void Awaited::end_kept() {
  if (place_) end_ = job_clocks().common_now();
}

void Awaited::end_polled(const profiles::TimedKey& key, Nanoseconds waited) {
  if (!keeps_) return;
  key_ = &key;
  end_ = job_clocks().common_now();
  begin_ = end_ - waited;
}

void Awaited::note_kept(const Message& message) const {
  KeptMessage* const kept = message_ends.find(message.kept, message.request);
  if (!kept) return;
  if (key_) MessageEnds::note_wait(*kept, *key_, begin_, end_, Waited::alone);
  else MessageEnds::note_wait(*kept, *place_, begin_, end_, Waited::alone);
}

void Awaited::complete_all(int source) const {
  if ((place_ || key_) && count_ == 1) [[unlikely]]
    for (const Message& m : found()) note_kept(m);
  if (!wait_) return;
  // MPI does not tell which message came last. So the wait counts for all received messages, or for all sent messages
  // if the call has no receive.
  std::array<Rank, kMost> peers;
  std::size_t several = 0;
  for (const Message& m : found()) {
    const Rank its = peer_of_message(m, source);
    const auto end = peers.begin() + static_cast<std::ptrdiff_t>(several);
    if (m.receives != receives_ || std::find(peers.begin(), end, its) != end) continue;
    peers[several++] = its;
    waited_for(its, wait_);
  }
  if (several > 1) core::add_shared(wait_.site->together, wait_.time);
}

void Awaited::complete_one(int index, int source) const {
  if (place_ || key_) [[unlikely]]
    for (const Message& m : found())
      if (m.index == index) note_kept(m);
  if (!wait_) return;
  int several = 0;
  for (const Message& m : found()) {
    if (m.index != index) continue;
    waited_for(peer_of_message(m, source), wait_);
    ++several;
  }
  if (several > 1) core::add_shared(wait_.site->together, wait_.time);
}

void Awaited::forget_completed(const MPI_Request* requests) const {
  for (const Message& m : found())
    if (!m.persistent && requests[m.index] != m.request) started_messages.forget_message(m.request);
}

}  // namespace latecomer::shim

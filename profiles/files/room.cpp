// SPDX-License-Identifier: BSD-3-Clause
// The file of a room. It gets its name when it is complete (link), and the process that closes the room removes the
// name. Processes wait on the state by futex, so a crowded host gives its cores to those that have not come.
#include "profiles/files/room.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>

#include "profiles/base/descriptor.hpp"
#include "profiles/base/process.hpp"

namespace latecomer::profiles {

struct RoomPlace {
  core::Rank rank;
  ProcessId process;
};

struct RoomHead {
  char magic[16];
  std::int32_t version, expected;
  char build[80];
  ProcessId maker;
  std::atomic<std::uint32_t> state;    // Room::State
  std::atomic<std::uint32_t> came;     // places taken
  std::atomic<std::uint32_t> written;  // places filled in
  RoomPlace* places() { return reinterpret_cast<RoomPlace*>(this + 1); }
  const RoomPlace* places() const { return reinterpret_cast<const RoomPlace*>(this + 1); }
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(RoomHead) % alignof(RoomPlace) == 0);

namespace {

using core::Nanoseconds;

constexpr char kMagic[16] = "latecomer room";
constexpr std::int32_t kVersion = 1;
// A wait for a state looks this often whether the process that it waits for lives. Chosen: a death is rare, and the
// launcher ends most jobs before.
constexpr Nanoseconds kLookEvery = 200'000'000;

Nanoseconds clock() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

/// Waits until the word is not `value`, about `longest` at most.
void wait_on(std::atomic<std::uint32_t>& word, std::uint32_t value, Nanoseconds longest) {
  const timespec t{longest / 1'000'000'000, longest % 1'000'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &t, nullptr, 0);
}

std::size_t bytes_for(int expected) {
  return sizeof(RoomHead) + static_cast<std::size_t>(expected) * sizeof(RoomPlace);
}

RoomHead* map(int fd, std::size_t size) {
  void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return at == MAP_FAILED ? nullptr : static_cast<RoomHead*>(at);
}

/// Removes rooms, and unfinished ones, whose makers have died. A living room is younger than a minute.
void sweep() {
  constexpr time_t kOld_s = 60;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(kRoomFolder), closedir);
  if (!folder) return;
  const int in = dirfd(folder.get());
  const time_t now = time(nullptr);
  while (const dirent* entry = readdir(folder.get())) {
    if (std::strncmp(entry->d_name, kRoomPrefix, sizeof kRoomPrefix - 1) != 0) continue;
    const Descriptor file(openat(in, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat about {};
    if (file.get() < 0 || fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode) || about.st_uid != geteuid() ||
        now - about.st_mtime < kOld_s)
      continue;
    ProcessId maker;
    const bool known = pread(file.get(), &maker, sizeof maker, offsetof(RoomHead, maker)) == sizeof maker;
    if (!known || maker.pid == 0 || life_of(maker) == Life::ended) unlinkat(in, entry->d_name, 0);
  }
}

/// Makes the file. Returns false if it exists already, or cannot be made.
bool make(const std::string& path, int expected, std::string_view build) {
  const std::string unfinished = path + ".tmp-" + std::to_string(getpid());
  const Descriptor file(open(unfinished.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.get() < 0) return false;
  const std::size_t size = bytes_for(expected);
  // Reserves the memory now. A store into a full file system would end the process.
  RoomHead* head = posix_fallocate(file.get(), 0, static_cast<off_t>(size)) == 0 ? map(file.get(), size) : nullptr;
  bool made = false;
  if (head) {
    new (head) RoomHead{};
    std::memcpy(head->magic, kMagic, sizeof kMagic);
    head->version = kVersion;
    head->expected = expected;
    head->maker = this_process();
    build.copy(head->build, sizeof head->build - 1);
    munmap(head, size);
    made = link(unfinished.c_str(), path.c_str()) == 0;
  }
  unlink(unfinished.c_str());
  return made;
}

}  // namespace

std::optional<Room> Room::enter(std::uint64_t key, int expected, core::Rank rank, std::string_view build) {
  char path[64];
  std::snprintf(path, sizeof path, "%s/%s%016llx", kRoomFolder, kRoomPrefix, static_cast<unsigned long long>(key));
  const std::size_t size = bytes_for(expected);
  // Each try makes the file, opens it, or removes one of a dead process. Others do the same meanwhile. Derived: the one
  // that removes the file needs less than a millisecond, or has died.
  constexpr int kTries = 64;
  for (int tries = 0; tries < kTries; ++tries) {
    Descriptor file(open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file.get() < 0) {
      if (errno != ENOENT) return {};
      if (make(path, expected, build)) sweep();
      continue;
    }
    struct stat about {};
    if (fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode) || about.st_uid != geteuid() ||
        (about.st_mode & (S_IRWXG | S_IRWXO)) != 0 || about.st_size < static_cast<off_t>(sizeof(RoomHead)))
      return {};
    RoomHead* head = map(file.get(), static_cast<std::size_t>(about.st_size));
    if (!head) return {};
    Room room(head, static_cast<std::size_t>(about.st_size), path);
    if (std::memcmp(head->magic, kMagic, sizeof kMagic) != 0 || head->version != kVersion) return {};
    if (life_of(head->maker) == Life::ended) {
      // Only one process closes it, and removes it. If several did, the second would remove the room of the first.
      if (!room.turn(State::open, State::broken)) usleep(1'000);
      continue;
    }
    // Another build may expect another number: the room cannot become whole.
    if (head->expected != expected || room.size_ != size || build != std::string_view(head->build)) {
      room.turn(State::open, State::broken);
      return {};
    }
    if (!room.take_place(rank)) return {};
    return room;
  }
  return {};
}

Room::Room(Room&& o) noexcept
    : head_(std::exchange(o.head_, nullptr)), size_(o.size_), path_(std::move(o.path_)), mine_(o.mine_) {}

Room::~Room() {
  if (head_) munmap(head_, size_);
}

bool Room::turn(State from, State to) {
  auto expected = static_cast<std::uint32_t>(from);
  if (!head_->state.compare_exchange_strong(expected, static_cast<std::uint32_t>(to), std::memory_order_acq_rel))
    return false;
  if (from == State::open) unlink(path_.c_str());
  syscall(SYS_futex, &head_->state, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  return true;
}

bool Room::take_place(core::Rank rank) {
  const auto expected = static_cast<std::uint32_t>(head_->expected);
  mine_ = head_->came.fetch_add(1, std::memory_order_relaxed);
  if (mine_ >= expected) {
    turn(State::open, State::broken);
    return false;
  }
  head_->places()[mine_] = {rank, this_process()};
  if (head_->written.fetch_add(1, std::memory_order_acq_rel) + 1 < expected) return true;
  const std::vector<core::Rank> all = ranks();
  turn(State::open, std::ranges::adjacent_find(all) == all.end() ? State::whole : State::broken);
  return true;
}

Room::State Room::meet(Nanoseconds longest) {
  const Nanoseconds deadline = clock() + longest;
  for (;;) {
    const std::uint32_t state = head_->state.load(std::memory_order_acquire);
    if (state != static_cast<std::uint32_t>(State::open)) return static_cast<State>(state);
    const Nanoseconds left = deadline - clock();
    if (left <= 0) turn(State::open, State::broken);
    else wait_on(head_->state, state, left);
  }
}

std::vector<core::Rank> Room::ranks() const {
  std::vector<core::Rank> out;
  out.reserve(static_cast<std::size_t>(head_->expected));
  for (int i = 0; i < head_->expected; ++i) out.push_back(head_->places()[i].rank);
  std::ranges::sort(out);
  return out;
}

std::size_t Room::lowest() const {
  const RoomPlace* places = head_->places();
  return static_cast<std::size_t>(
      std::min_element(places, places + head_->expected,
                       [](const RoomPlace& a, const RoomPlace& b) { return a.rank < b.rank; }) -
      places);
}

bool Room::speaks() const { return lowest() == mine_; }

void Room::say(bool yes) { turn(State::whole, yes ? State::yes : State::broken); }

Room::State Room::hear() {
  const ProcessId speaker = head_->places()[lowest()].process;
  for (;;) {
    const std::uint32_t state = head_->state.load(std::memory_order_acquire);
    if (state != static_cast<std::uint32_t>(State::whole)) return static_cast<State>(state);
    if (life_of(speaker) == Life::ended)  // it may have spoken before
      return static_cast<State>(head_->state.load(std::memory_order_acquire));
    wait_on(head_->state, state, kLookEvery);
  }
}

}  // namespace latecomer::profiles

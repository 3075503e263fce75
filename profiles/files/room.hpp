// SPDX-License-Identifier: BSD-3-Clause
// A room: a file in shared memory in which the processes of one job on one host meet before MPI may be used for it. It
// says whether all of them came, with equal builds, and passes the word of their lowest rank on. It knows neither MPI
// nor the launcher. Every process of a room sees the same outcome, because one atomic word holds it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/types.hpp"

namespace latecomer::profiles {

/// The folder and the begin of the names of rooms.
inline constexpr char kRoomFolder[] = "/dev/shm", kRoomPrefix[] = "latecomer-room-";

struct RoomHead;

class Room {
 public:
  enum class State : std::uint32_t {
    open,    ///< processes may come
    broken,  ///< for good: one did not come in time, or came twice, or has another build, or the lowest rank said no
    whole,   ///< the expected number of processes is here, with different ranks and equal builds
    yes,     ///< whole, and the lowest rank said yes
  };

  /// Enters the room of `key` as `rank`, or makes it. `key`: different in jobs that live on this kernel at one time,
  /// and equal in the processes of a job that share a process number namespace. `expected`: number of these processes,
  /// at least 1. `build`: at most 79 bytes. Nothing if the room is of another user, closed or damaged, or there is no
  /// memory for it. Removes rooms of dead processes when it makes one.
  static std::optional<Room> enter(std::uint64_t key, int expected, core::Rank rank, std::string_view build);
  Room(Room&& o) noexcept;
  Room& operator=(Room&&) = delete;
  ~Room();

  /// Waits until all are here, at most `longest`, and then breaks the room. Returns `whole` (or what follows it) or
  /// `broken`.
  State meet(core::Nanoseconds longest);
  /// The ranks in the room, ascending. Call it when the room is whole.
  std::vector<core::Rank> ranks() const;
  /// Whether this process has the lowest rank of a whole room.
  bool speaks() const;
  /// Says the outcome of a whole room. Only the process that speaks calls it, once.
  void say(bool yes);
  /// Waits for say(). Returns `yes`, `broken`, or `whole` if the process that speaks has died.
  State hear();

 private:
  Room(RoomHead* head, std::size_t size, std::string path) : head_(head), size_(size), path_(std::move(path)) {}
  /// Changes the state and wakes all. Returns false if the state is not `from` any more.
  bool turn(State from, State to);
  bool take_place(core::Rank rank);
  std::size_t lowest() const;

  RoomHead* head_;
  std::size_t size_;
  std::string path_;
  std::size_t mine_ = 0;
};

}  // namespace latecomer::profiles

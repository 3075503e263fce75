// SPDX-License-Identifier: BSD-3-Clause
// The roll call by hosts. The ranks of a job on a host meet in a room (profiles/base/room.hpp). If the room holds all
// ranks of MPI_COMM_WORLD, the answer is yes, without a request. Otherwise the lowest rank of each room speaks for it,
// by names of the process manager:
// - guest R: only R itself looks it up, to know that the service works.
// - room R: of the lowest rank R of a room, with the ranks in it. Rank 0 publishes its own first. The others publish
//   theirs after they have found that, so they know that rank 0 answers.
// - rooms: rank 0's answer: yes if the rooms hold each rank of MPI_COMM_WORLD once. The lowest rank that no room so far
//   holds speaks for the next room, so rank 0 knows which name to wait for.
// A room is whole or broken for all its ranks alike. A rank that has published its room waits for the answer without a
// limit. Rank 0 gives it in any case. So the ranks that hear yes are all ranks.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text.hpp"
#include "profiles/base/room.hpp"
#include "shim/job/names.hpp"
#include "shim/job/roll_call.hpp"
#include "shim/log.hpp"
#include "shim/mpi/end_job.hpp"
#include "shim/mpi/entry.hpp"

namespace latecomer::shim {
namespace {

using profiles::Room;

// A value of this length passes all process managers. A room whose ranks need more (placed at random) is no room.
constexpr std::size_t kMostText = 250;

/// Ascending ranks as text: runs of FIRST.COUNT.STEP, joined by "_". "": too long.
std::string text_of(const std::vector<Rank>& ranks) {
  std::string out;
  for (std::size_t i = 0; i < ranks.size() && out.size() <= kMostText;) {
    std::size_t end = i + 1;
    const Rank step = end < ranks.size() ? ranks[end] - ranks[i] : 1;
    while (end < ranks.size() && ranks[end] - ranks[end - 1] == step) ++end;
    out += (out.empty() ? "" : "_") + std::to_string(ranks[i]) + "." + std::to_string(end - i) + "." +
           std::to_string(step);
    i = end;
  }
  return out.size() <= kMostText ? out : "";
}

/// Marks the ranks of the text. Returns false if one is outside, or marked already.
bool mark(const char* text, std::vector<bool>& there) {
  for (;;) {
    long part[3];
    for (int i = 0; i < 3; ++i) {
      char* end = nullptr;
      part[i] = std::strtol(text, &end, 10);
      if (end == text || (i < 2 && *end != '.')) return false;
      text = i < 2 ? end + 1 : end;
    }
    const auto size = static_cast<long>(there.size());
    if (part[0] < 0 || part[1] < 1 || part[1] > size || part[2] < 1 || part[2] > size ||
        part[0] + (part[1] - 1) * part[2] >= size)
      return false;
    for (long i = 0; i < part[1]; ++i) {
      const auto at = static_cast<std::size_t>(part[0] + i * part[2]);
      if (there[at]) return false;
      there[at] = true;
    }
    if (*text == '\0') return true;
    if (*text++ != '_') return false;
  }
}

/// The ranks in the value of a room with this build, or nullptr.
const char* ranks_in(const PortName& value) {
  const char* end = std::strchr(value, '#');
  return end && std::string_view(value, static_cast<std::size_t>(end - value)) == own_build_ids() ? end + 1 : nullptr;
}

/// On rank 0. Whether the rooms hold every rank.
bool all_rooms(Names& names, const std::vector<Rank>& mine, int size, Nanoseconds deadline) {
  std::vector<bool> there(static_cast<std::size_t>(size));
  for (const Rank r : mine) there[static_cast<std::size_t>(r)] = true;
  int rooms = 1;
  for (auto next = there.begin(); (next = std::find(next, there.end(), false)) != there.end(); ++rooms) {
    const auto lowest = static_cast<int>(next - there.begin());
    PortName value;
    // A rank that has no room asks the name service by itself.
    if (!names.wait_for("room", lowest, deadline, value, "here")) return false;
    const char* ranks = ranks_in(value);
    if (!ranks || !mark(ranks, there) || !there[static_cast<std::size_t>(lowest)]) return false;
  }
  say(2, "the ranks met in %d rooms", rooms);
  return true;
}

/// Speaks for a room that does not hold all ranks. Returns the answer of all rooms.
bool ask_rooms(const std::vector<Rank>& ranks, int size, Nanoseconds deadline) {
  const int lowest = ranks.front();
  const std::string text = text_of(ranks);
  Names names;
  if (text.empty() || ranks.back() >= size || !names.sound(lowest) || names.shared()) return false;
  PortName mine, value;
  std::snprintf(mine, sizeof mine, "%s#%s", own_build_ids(), text.c_str());
  if (!names.publish("guest", lowest, mine)) return false;
  const bool works = names.look_up("guest", lowest, value) && std::strcmp(value, mine) == 0;
  names.unpublish("guest", lowest, mine);
  if (!works) return false;
  bool yes = false;
  if (lowest == 0) {
    // From here on, others may wait for the answer.
    names.publish("room", 0, mine);
    try {
      yes = all_rooms(names, ranks, size, deadline);
    } catch (const std::exception&) {
    }
    names.publish("rooms", 0, yes ? "yes" : "no");
  } else {
    if (!names.wait_for("room", 0, deadline, value, "here") || !ranks_in(value)) return false;
    names.publish("room", lowest, mine);
    names.wait_for("rooms", 0, 0, value);
    yes = std::strcmp(value, "yes") == 0;
  }
  // All others have read it before the answer. The answer stays until the job ends.
  names.unpublish("room", lowest, mine);
  return yes;
}

}  // namespace

bool meet_in_rooms(int rank, int size, double timeout_s) {
  const auto all = static_cast<Nanoseconds>(timeout_s * 1e9);
  // The ranks of a host leave MPI_Init together. Half of the time-out is for the roll call by names. Chosen: a rank
  // that comes later than this makes the roll call slower.
  constexpr Nanoseconds kMostOnHost = 10'000'000'000, kMostBetween = 10'000'000'000;
  const Nanoseconds deadline = now() + std::min(all / 2, kMostBetween);
  const auto local = local_ranks(size);
  if (!local) return false;
  auto room = Room::enter(local->key, local->count, rank, own_build_ids());
  if (!room || room->meet(std::min(all / 4, kMostOnHost)) == Room::State::broken) return false;
  if (local->count == size) {
    if (rank == 0) say(2, "the ranks met in 1 room");
    return true;
  }
  if (room->speaks()) {
    bool yes = false;
    try {
      yes = ask_rooms(room->ranks(), size, deadline);
    } catch (const std::exception&) {  // without memory, nothing is published yet
    }
    room->say(yes);
    return yes;
  }
  const Room::State heard = room->hear();
  if (heard == Room::State::whole) {
    warn("a rank of this host ended in the roll call, and the ranks may have heard different answers: the job ends");
    end_job(MPI_COMM_WORLD, MPI_ERR_OTHER);
  }
  return heard == Room::State::yes;
}

}  // namespace latecomer::shim

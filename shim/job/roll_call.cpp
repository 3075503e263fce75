// SPDX-License-Identifier: BSD-3-Clause
// The roll call: is every rank of MPI_COMM_WORLD preloaded with the same build? MPI communication cannot answer: a rank
// without the preload would receive the messages in the program's calls.
//
// Ranks answer by rooms. The ranks of a host meet in a room in shared memory (profiles/files/room.hpp), which is whole
// or broken for all of them alike. A rank without a whole room is a room of one. If one room holds all ranks, the
// answer is yes, without a request. Otherwise rank 0 asks the rooms by the process manager's name service (rooms.cpp).
//
// - A rank tries rooms, then `latecomer run` (run_channel.cpp), and goes on only after a no. So all ranks get yes, or
//   none does.
// - A rank that is missing, late or of another build is named once, and costs the others the time-out at most.
// - A name service that fails or lies makes no rank say yes: the rooms have to say each rank once.
// - Every wait has a time-out, or its partner has promised an answer. If that partner dies, no rank knows what others
//   have heard, and the job ends with a message.
#include "shim/job/roll_call.hpp"

#include <algorithm>

#include "profiles/base/roll_call.hpp"
#include "profiles/files/room.hpp"
#include "shim/job/output.hpp"
#include "shim/log.hpp"
#include "shim/mpi/end_job.hpp"
#include "shim/mpi/entry.hpp"
#include "shim/state/output.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {
namespace {

using profiles::Room;

/// Returns the answer of all rooms.
bool meet_in_rooms(int rank, RoomCall& call) {
  // Chosen: the ranks of a host leave MPI_Init together. A rank that comes later makes the roll call slower.
  constexpr Nanoseconds kMostOnHost = 10'000'000'000;
  const Nanoseconds longest = std::min(static_cast<Nanoseconds>(call.timeout_s * 1e9) / 4, kMostOnHost);
  const auto local = find_local_ranks(call.size);
  auto room = local && local->count > 1 ? Room::enter(local->key, local->count, rank, roll_call_build()) : std::nullopt;
  if (!room || room->meet(longest) == Room::State::broken) {
    call.ranks = {rank};
    return ask_rooms(call);
  }
  if (local->count == call.size) {
    if (rank == 0) say(2, "the ranks met in 1 room");
    return true;
  }
  if (room->speaks()) {
    bool yes = false;
    try {
      call.ranks = room->ranks();
      yes = ask_rooms(call);
    } catch (const std::exception&) {  // without memory, no name is published yet
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

/// Tries rooms, then `latecomer run`. After a no, `call.wrong` holds what this rank has to report.
bool ask_all(int rank, RoomCall& call) {
  constexpr Nanoseconds kGrace = 2'000'000'000;  // chosen: time-outs of ranks that began together differ by less
  if (meet_in_rooms(rank, call)) return true;
  const RunAnswer run = ask_run(rank, call.size, std::max(call.deadline, now()) + kGrace);
  if (run.verdict == RunAnswer::yes) {
    if (rank == 0) say(1, "the ranks found each other through latecomer run");
    return true;
  }
  if (run.verdict == RunAnswer::no) {
    call.wrong.clear();
    if (!run.why.empty()) call.wrong.push_back(run.why);
  }
  return false;
}

RoomCall begin_call(int size, double timeout_s) {
  return {size, timeout_s, now() + static_cast<Nanoseconds>(timeout_s * 1e9)};
}

}  // namespace

std::string roll_call_build() {
  std::string build = own_build_ids();
  if (job_world().sessions) build += profiles::kSessionMark;
  return build;
}

void decline_roll_call(int rank, int size, double timeout_s) {
  RoomCall call = begin_call(size, timeout_s);
  if (size > 1) ask_all(rank, call);  // yes: all ranks decline
}

bool roll_call(int rank, int size, double timeout_s) {
  if (size == 1) return true;
  RoomCall call = begin_call(size, timeout_s);
  if (ask_all(rank, call)) return true;
  adopt_identity(rank);
  choose_output_alone("");
  for (const std::string& why : call.wrong)
    warn("%s: every rank observes alone and all calls stay native; after the job, run latecomer recover %s",
         why.c_str(), (job_output().path + ".parts").c_str());
  return false;
}

}  // namespace latecomer::shim

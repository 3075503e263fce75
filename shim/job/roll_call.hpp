// SPDX-License-Identifier: BSD-3-Clause
// The roll call: whether every rank of the job runs this library. start.cpp uses roll_call() only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/types.hpp"
#include "shim/clock.hpp"

namespace latecomer::shim {

// roll_call.cpp

/// Confirms that every rank of MPI_COMM_WORLD runs this library build. All ranks get the same answer. Uses no MPI
/// communication: MPI_Publish_name and MPI_Lookup_name are local calls.
bool roll_call(int rank, int size, double timeout_s);
/// Lets the others' roll call end with no at once. For a rank that has used a session before MPI_Init.
void decline_roll_call(int rank, int size, double timeout_s);
/// What all ranks must have in common: own_build_ids(). A rank that declines has kSessionMark behind it.
std::string roll_call_build();

// rooms.cpp

/// The data of the rank that speaks for a room.
struct RoomCall {
  int size;                   ///< of MPI_COMM_WORLD
  double timeout_s;           ///< for messages
  Nanoseconds deadline;       ///< of waits for a rank that may not come
  std::vector<Rank> ranks{};  ///< of the room, ascending
  /// The faults that this rank has to report.
  std::vector<std::string> wrong{};
};
/// Confirms by the name service that the rooms hold every rank. The lowest rank of each room calls it. Returns true on
/// all of them or on none.
bool ask_rooms(RoomCall& call) noexcept;
/// Takes the identity of the job from rank 0, if its name can be found. For ranks that observe alone.
void adopt_identity(int rank);

// local_ranks.cpp

/// The launcher's data about the ranks of this job on this host.
struct LocalRanks {
  std::uint64_t key = 0;  ///< equal in these ranks, different in other jobs of this kernel
  int count = 0;
};
/// Nothing if the launcher does not tell.
std::optional<LocalRanks> find_local_ranks(int size);

// run_channel.cpp

struct RunAnswer {
  enum { silent, no, yes } verdict = silent;  ///< silent: it offers no channel, or does not answer; others may hear no
  std::string why;                            ///< of no, if this rank says it
};
/// Whether `latecomer run` has started the job and offers its channel.
bool run_offers_roll_call();
/// Asks `latecomer run`, which has started the job, whether every rank of MPI_COMM_WORLD asks it, too.
RunAnswer ask_run(int rank, int size, Nanoseconds deadline);

}  // namespace latecomer::shim

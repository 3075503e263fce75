// SPDX-License-Identifier: BSD-3-Clause
// The roll call: whether every rank of the job runs this library. start.cpp uses roll_call() only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shim/clock.hpp"

namespace latecomer::shim {

// roll_call.cpp

/// Confirms that every rank of MPI_COMM_WORLD runs this library build. All ranks get the same answer. Uses no MPI
/// communication: MPI_Publish_name and MPI_Lookup_name are local calls.
bool roll_call(int rank, int size, double timeout_s);

// rooms.cpp

/// Confirms the same with a few requests per host. Returns true on all ranks or on none. After false, a rank asks the
/// name service by itself.
bool meet_in_rooms(int rank, int size, double timeout_s);

// local_ranks.cpp

/// What the launcher tells about the ranks of this job on this host.
struct LocalRanks {
  std::uint64_t key = 0;  ///< equal in these ranks, different in other jobs of this kernel
  int count = 0;
};
/// Nothing if the launcher does not tell.
std::optional<LocalRanks> local_ranks(int size);

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

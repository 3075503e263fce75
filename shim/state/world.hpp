// SPDX-License-Identifier: BSD-3-Clause
// The ranks of the job and latecomer's communicators of them. Written at the start only, `state` also at the end.
#pragma once

#include <vector>

#include "core/agreement/tree.hpp"
#include "shim/mpi/api.hpp"

namespace latecomer::shim {

using core::Rank;

struct CommState;  // shim/state/communicator.hpp

struct World {
  bool together = false;  ///< the roll call confirmed every rank; `comm` exists
  bool sessions = false;  ///< a session began before MPI_Init
  int rank = 0, size = 1;
  MPI_Comm comm = MPI_COMM_NULL;         ///< private, with the ranks of MPI_COMM_WORLD
  MPI_Comm engine_comm = MPI_COMM_NULL;  ///< the same for the background engine, if it runs
  MPI_Group group = MPI_GROUP_NULL;
  std::vector<int> hosts;           ///< [ranks], the number of each rank's host by MPI's name; equal on all
  core::TreePlace place;            ///< of this rank in the tree over all ranks
  bool first_here = true;           ///< no lower rank is known on this kernel in this pid namespace
  int keyval = MPI_KEYVAL_INVALID;  ///< of the attribute that holds the state of a communicator
  CommState* state = nullptr;       ///< of MPI_COMM_WORLD, while it exists

  /// The hosts of these ranks of MPI_COMM_WORLD, numbered from 0 in the order in which they first appear.
  std::vector<int> hosts_of(const std::vector<Rank>& world) const;
};

extern World* job_world_instance __attribute__((visibility("hidden")));
inline World& job_world() { return *job_world_instance; }

}  // namespace latecomer::shim

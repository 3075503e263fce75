// SPDX-License-Identifier: BSD-3-Clause
// The life of a communicator's state (CommState): it begins at the first collective and ends with the communicator.
// That is when MPI_Comm_free or MPI_Comm_disconnect returns, not when MPI deletes the attribute: the program's own
// delete functions run before and after that, and the calls in them count. This file must not look at single calls.
#pragma once

#include "shim/causes/message_ends.hpp"
#include "shim/causes/usage.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/process.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {

/// The state of a communicator, created at its first collective. nullptr: the handle is no communicator, or each rank
/// observes alone and this rank has no memory. Where other ranks rely on this rank, the job ends.
CommState* state_of_any(MPI_Comm comm);
inline CommState* state_of(MPI_Comm comm) {
  return comm == MPI_COMM_WORLD && job_world().state ? job_world().state : state_of_any(comm);
}

/// The attribute's delete function: ends the state of a communicator that no call frees now.
int on_communicator_end(MPI_Comm, int, void* attribute, void*);

/// The scope of MPI_Comm_free and MPI_Comm_disconnect.
class Freeing {
 public:
  explicit Freeing(MPI_Comm* comm);
  ~Freeing();
  Freeing(const Freeing&) = delete;
  Freeing& operator=(const Freeing&) = delete;

 private:
  MPI_Comm* handle_;
  MPI_Comm comm_;
};

/// `native` frees the communicator.
template <typename Native>
int free_communicator(MPI_Comm* comm, Native native) {
  end_polls();
  if (!active.load(std::memory_order_acquire) || !comm || *comm == MPI_COMM_NULL) return native();
  const Freeing freeing(comm);
  const MPI_Comm ended = *comm;
  const int rc = native();
  if (*comm == MPI_COMM_NULL) message_ends.close_communicator(ended);
  return rc;
}

}  // namespace latecomer::shim

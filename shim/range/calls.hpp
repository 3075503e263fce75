// SPDX-License-Identifier: BSD-3-Clause
// Checks of arguments and waiting, which the functions of latecomer/range.h share.
#pragma once

#include <mpi.h>

#include <mutex>
#include <new>

#include "shim/patience.hpp"
#include "shim/range/operation.hpp"

namespace latecomer::range {

/// The error class of a code of MPI.
inline int class_of(int rc) {
  int out = rc;
  if (rc != MPI_SUCCESS && PMPI_Error_class(rc, &out) != MPI_SUCCESS) return MPI_ERR_UNKNOWN;
  return out;
}

/// Runs `body`. No exception leaves it.
template <typename Body>
int guarded(Body body) {
  try {
    return class_of(body());
  } catch (const std::bad_alloc&) {
    return MPI_ERR_NO_MEM;
  } catch (...) {
    return MPI_ERR_INTERN;
  }
}

/// Runs `body` under the library's lock. No exception leaves it.
template <typename Body>
int inside(Body body) {
  return guarded([&] {
    const std::lock_guard guard(library().lock);
    return body();
  });
}

inline int wrong_range(const latecomer_range* r) {
  if (!r || !r->hub || !library().knows_hub(&hub_of(*r))) return MPI_ERR_COMM;
  return r->rank == MPI_UNDEFINED ? MPI_ERR_COMM : MPI_SUCCESS;
}
inline int wrong_data(MPI_Count count, MPI_Datatype type) {
  if (count < 0) return MPI_ERR_COUNT;
  return type == MPI_DATATYPE_NULL ? MPI_ERR_TYPE : MPI_SUCCESS;
}
inline int wrong_peer(const latecomer_range& r, int peer, int tag, bool receives) {
  if (peer == MPI_PROC_NULL) return MPI_SUCCESS;
  if (!(receives && peer == MPI_ANY_SOURCE) && (peer < 0 || peer >= r.size)) return MPI_ERR_RANK;
  return tag < 0 && !(receives && tag == MPI_ANY_TAG) ? MPI_ERR_TAG : MPI_SUCCESS;
}

inline Rank in_hub(const latecomer_range& r, int peer) {
  return peer == MPI_ANY_SOURCE ? MPI_ANY_SOURCE : to_mpi(r, peer);
}
inline Envelope key_of(const latecomer_range& r, int tag) { return {identity_of(r), tag, 0, 0, 0}; }

/// Moves all operations until `reached`, which is called under the lock.
template <typename Reached>
int drive_until(Reached reached) {
  shim::Patience patience(true);
  for (;;) {
    bool done = false;
    const int rc = inside([&] {
      if ((done = reached())) return MPI_SUCCESS;
      const int moved = library().progress();
      done = reached();
      return moved;
    });
    if (rc != MPI_SUCCESS || done) return rc;
    patience.wait();
  }
}

}  // namespace latecomer::range

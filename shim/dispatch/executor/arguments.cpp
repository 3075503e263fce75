// SPDX-License-Identifier: BSD-3-Clause
// Implements the checks of arguments as MPICH 4.0.2 makes them in its own collectives.
#include "shim/dispatch/executor/arguments.hpp"

#include "shim/state/job.hpp"

namespace latecomer::shim {
namespace {

/// One side of a call on this rank.
struct Side {
  const void* buffer;
  MPI_Count count;
  MPI_Datatype type;
};

/// MPI has no query for it. Packing nothing checks the datatype first.
bool committed(MPI_Datatype type) {
  char nothing = 0;
  MPI_Count position = 0;
  return PMPI_Pack_c(&nothing, 0, type, &nothing, 0, &position, job().comm) == MPI_SUCCESS;
}

int check_side(const Side& side) {
  if (side.count <= 0) return MPI_SUCCESS;
  if (side.buffer == MPI_IN_PLACE) return MPI_ERR_BUFFER;
  if (is_basic(side.type)) return side.buffer ? MPI_SUCCESS : MPI_ERR_BUFFER;
  if (!committed(side.type)) return MPI_ERR_TYPE;
  if (side.buffer) return MPI_SUCCESS;
  // MPI_BOTTOM is a null pointer, and its datatypes contain addresses.
  Layout layout;
  const int rc = layout.fill(side.type);
  return rc == MPI_SUCCESS && layout.true_lower == 0 && layout.size > 0 ? MPI_ERR_BUFFER : rc;
}

/// The root of a scatter or gather. `all`: the buffer with all blocks. `own`: the place of the root's block there, in
/// items of `all`, with `items` items.
int check_root(const Side& all, const Side& mine, MPI_Count own, MPI_Count items, bool irregular) {
  if (const int rc = check_side(all); rc != MPI_SUCCESS) return rc;
  if (mine.buffer == MPI_IN_PLACE) return MPI_SUCCESS;
  if (const int rc = check_side(mine); rc != MPI_SUCCESS) return rc;
  if (mine.type != all.type || mine.count == 0 || (irregular ? items == 0 : mine.count != items)) return MPI_SUCCESS;
  MPI_Count size = 0;
  const int rc = PMPI_Type_size_x(all.type, &size);
  return rc == MPI_SUCCESS && mine.buffer == static_cast<const char*>(all.buffer) + own * size ? MPI_ERR_BUFFER : rc;
}

}  // namespace

int check_arguments(const core::Signature& signature, Rank rank, const Operands& o) {
  const bool root = !core::is_rooted(signature.op) || rank == signature.root;
  const Side send{o.send, o.send_count, o.send_type}, recv{o.recv, o.count, o.datatype};
  if (core::is_reduction(signature.op)) {
    if (root)
      if (const int rc = check_side(recv); rc != MPI_SUCCESS || o.send == MPI_IN_PLACE) return rc;
    const int rc = check_side(send);
    return rc == MPI_SUCCESS && root && o.send == o.recv ? MPI_ERR_BUFFER : rc;
  }
  if (!core::is_scatter(signature.op) && !core::is_gather(signature.op)) return check_side(recv);  // a bcast
  const bool scatters = core::is_scatter(signature.op);
  const Side &mine = scatters ? recv : send, &all = scatters ? send : recv;
  if (!root) return check_side(mine);
  if (!core::is_irregular(signature.op)) return check_root(all, mine, rank * all.count, all.count, false);
  const MPI_Count items = o.blocks.counts ? o.blocks.count(rank) : 0;
  // The sizes of all blocks together only tell whether the root's buffer is used.
  return check_root({all.buffer, items, all.type}, mine, o.blocks.displacements ? o.blocks.displacement(rank) : 0,
                    items, true);
}

}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// Implements the checks of arguments as MPICH 4.0.2 makes them in its own collectives, and as far as Open MPI 4.1.4
// differs (shim/mpi/beneath.hpp), as that makes them.
#include "shim/executor/arguments.hpp"

#include "shim/mpi/beneath.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {
namespace {

/// One side of a call on this rank.
struct Side {
  const void* buffer;
  MPI_Count count;
  MPI_Datatype type;
};

/// MPI has no query for that. A pack of no items checks the datatype.
bool committed(MPI_Datatype type) {
  char nothing = 0;
  MPI_Count position = 0;
  return PMPI_Pack_c(&nothing, 0, type, &nothing, 0, &position, job_world().comm) == MPI_SUCCESS;
}

int check_side(const Side& side, int in_place = MPI_ERR_BUFFER) {
  if (side.count <= 0) return MPI_SUCCESS;
  if (side.buffer == MPI_IN_PLACE) return in_place;
  if (is_basic(side.type)) return side.buffer ? MPI_SUCCESS : MPI_ERR_BUFFER;
  if (!committed(side.type)) return MPI_ERR_TYPE;
  if (side.buffer) return MPI_SUCCESS;
  // MPI_BOTTOM is a null pointer, and its datatypes contain addresses.
  Layout layout;
  const int rc = layout.read_type(side.type);
  return rc == MPI_SUCCESS && layout.true_lower == 0 && layout.size > 0 ? MPI_ERR_BUFFER : rc;
}

/// The root of a scatter or gather.
struct Root {
  Side all;              ///< the buffer with all blocks
  MPI_Count own, items;  ///< the place of the root's block there, in items of `all`, and its number of items
};
Root root_of(const core::Signature& signature, Rank rank, const Operands& o) {
  const bool scatters = core::is_scatter(signature.op);
  const void* const buffer = scatters ? o.send : o.recv;
  const MPI_Datatype type = scatters ? o.send_type : o.datatype;
  const MPI_Count count = scatters ? o.send_count : o.count;
  if (!core::is_irregular(signature.op)) return {{buffer, count, type}, rank * count, count};
  // The sizes of all blocks together only tell whether the root's buffer is used.
  const MPI_Count items = o.blocks.counts ? o.blocks.count(rank) : 0;
  return {{buffer, items, type}, o.blocks.displacements ? o.blocks.displacement(rank) : 0, items};
}

int check_root(const Root& root, const Side& mine, bool irregular) {
  const auto& [all, own, items] = root;
  if (const int rc = check_side(all, beneath().refused_rooted); rc != MPI_SUCCESS) return rc;
  if (mine.buffer == MPI_IN_PLACE) return MPI_SUCCESS;
  if (const int rc = check_side(mine); rc != MPI_SUCCESS) return rc;
  if (beneath().takes_one_buffer || mine.type != all.type || mine.count == 0 ||
      (irregular ? items == 0 : mine.count != items))
    return MPI_SUCCESS;
  MPI_Count size = 0;
  const int rc = PMPI_Type_size_x(all.type, &size);
  return rc == MPI_SUCCESS && mine.buffer == static_cast<const char*>(all.buffer) + own * size ? MPI_ERR_BUFFER : rc;
}

}  // namespace

int check_arguments(const core::Signature& signature, Rank rank, const Operands& o) {
  const bool rooted = core::is_rooted(signature.op), root = !rooted || rank == signature.root;
  const int refused = rooted ? beneath().refused_rooted : MPI_ERR_BUFFER;
  const Side send{o.send, o.send_count, o.send_type}, recv{o.recv, o.count, o.datatype};
  if (core::is_reduction(signature.op)) {
    if (root)
      if (const int rc = check_side(recv, refused); rc != MPI_SUCCESS || o.send == MPI_IN_PLACE) return rc;
    const int rc = check_side(send, refused);
    return rc == MPI_SUCCESS && root && o.send == o.recv ? refused : rc;
  }
  if (!core::is_scatter(signature.op) && !core::is_gather(signature.op)) return check_side(recv);  // a bcast
  const Side& mine = core::is_scatter(signature.op) ? recv : send;
  if (!root) return check_side(mine, refused);
  return check_root(root_of(signature, rank, o), mine, core::is_irregular(signature.op));
}

Operands with_in_place(const core::Signature& signature, Rank rank, const Operands& given) {
  Operands o = given;
  if (!beneath().takes_one_buffer) return o;
  if (signature.op == core::Collective::allreduce && o.send == o.recv && (o.count == 1 || o.send == MPI_BOTTOM))
    o.send = MPI_IN_PLACE;
  const bool scatters = core::is_scatter(signature.op);
  if ((!scatters && !core::is_gather(signature.op)) || rank != signature.root) return o;
  const auto [all, own, items] = root_of(signature, rank, o);
  const Side mine = scatters ? Side{o.recv, o.count, o.datatype} : Side{o.send, o.send_count, o.send_type};
  if (mine.type != all.type || mine.count != items || !mine.buffer || mine.buffer == MPI_IN_PLACE) return o;
  MPI_Count lower = 0, extent = 0;
  if (PMPI_Type_get_extent_x(all.type, &lower, &extent) != MPI_SUCCESS ||
      mine.buffer != static_cast<const char*>(all.buffer) + own * extent)
    return o;
  if (scatters) o.recv = MPI_IN_PLACE;
  else o.send = MPI_IN_PLACE;
  return o;
}

}  // namespace latecomer::shim

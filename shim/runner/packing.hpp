// SPDX-License-Identifier: BSD-3-Clause
// Packing and unpacking of items at any address, MPI_BOTTOM too.
#pragma once

#include "shim/mpi/api.hpp"

namespace latecomer::shim {

/// PMPI_Pack_c and PMPI_Unpack_c from the beginning of `packed`. `items`: may be MPI_BOTTOM with absolute addresses in
/// `type`, which MPICH's own functions refuse as a null pointer. `bytes`: the capacity of `packed`, or the size of the
/// packed data. Local. Return an MPI error code.
int pack_items(const void* items, MPI_Count count, MPI_Datatype type, char* packed, MPI_Count bytes, MPI_Comm comm);
int unpack_items(const char* packed, MPI_Count bytes, void* items, MPI_Count count, MPI_Datatype type, MPI_Comm comm);

}  // namespace latecomer::shim

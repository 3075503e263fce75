// SPDX-License-Identifier: BSD-3-Clause
// Packing from and unpacking to MPI_BOTTOM.
#include "shim/runner/packing.hpp"

#include <cstdint>

namespace latecomer::shim {
namespace {

/// Describes items at MPI_BOTTOM relative to an address that is not null, and calls use(address, count, type).
template <typename Use>
int from_anchor(MPI_Count count, MPI_Datatype type, char* anchor, Use use) {
  const auto back = -static_cast<MPI_Count>(reinterpret_cast<std::intptr_t>(anchor));
  MPI_Datatype moved = MPI_DATATYPE_NULL;
  int rc = PMPI_Type_create_hindexed_c(1, &count, &back, type, &moved);
  if (rc == MPI_SUCCESS) rc = PMPI_Type_commit(&moved);
  if (rc == MPI_SUCCESS) rc = use(anchor, MPI_Count{1}, moved);
  if (moved != MPI_DATATYPE_NULL) PMPI_Type_free(&moved);
  return rc;
}

}  // namespace

int pack_items(const void* items, MPI_Count count, MPI_Datatype type, char* packed, MPI_Count bytes, MPI_Comm comm) {
  if (count == 0 || bytes == 0) return MPI_SUCCESS;
  MPI_Count position = 0;
  const auto from = [&](const void* at, MPI_Count n, MPI_Datatype of) {
    return PMPI_Pack_c(at, n, of, packed, bytes, &position, comm);
  };
  return items ? from(items, count, type) : from_anchor(count, type, packed, from);
}

int unpack_items(const char* packed, MPI_Count bytes, void* items, MPI_Count count, MPI_Datatype type, MPI_Comm comm) {
  if (count == 0 || bytes == 0) return MPI_SUCCESS;
  MPI_Count position = 0;
  const auto to = [&](void* at, MPI_Count n, MPI_Datatype of) {
    return PMPI_Unpack_c(packed, bytes, &position, at, n, of, comm);
  };
  return items ? to(items, count, type) : from_anchor(count, type, const_cast<char*>(packed), to);
}

}  // namespace latecomer::shim

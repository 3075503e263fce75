// SPDX-License-Identifier: BSD-3-Clause
// The one way the shim sees MPI. The library refers to no MPI symbol. With strong references, children without MPI fail
// to start under LD_BIND_NOW=1 (measured). Weak ones stay null when the program brings MPI with
// dlopen(RTLD_LOCAL), as Python's extension modules do. family.cpp takes the functions from the front.
// This file lists every PMPI function that the shim calls, except those that are the next definition of a handler.
#pragma once

#include <mpi.h>

#include <climits>
#include <cstdint>
#include <type_traits>

#ifdef OPEN_MPI
#include "shim/mpi/open_mpi.hpp"
#endif

// clang-format indents every line of rows further than the line before.
// clang-format off
#define LATECOMER_PMPI(ROW) \
  ROW(PMPI_Abort) ROW(PMPI_Allgather) ROW(PMPI_Allreduce) ROW(PMPI_Bcast) ROW(PMPI_Cancel) ROW(PMPI_Comm_call_errhandler) \
  ROW(PMPI_Comm_create) ROW(PMPI_Comm_create_keyval) ROW(PMPI_Comm_get_attr) ROW(PMPI_Comm_get_errhandler) \
  ROW(PMPI_Comm_get_parent) ROW(PMPI_Comm_group) ROW(PMPI_Comm_rank) ROW(PMPI_Comm_remote_group) ROW(PMPI_Comm_set_attr) \
  ROW(PMPI_Comm_set_errhandler) ROW(PMPI_Comm_size) ROW(PMPI_Comm_test_inter) ROW(PMPI_Errhandler_free) ROW(PMPI_Error_class) \
  ROW(PMPI_Finalized) ROW(PMPI_Get_count) ROW(PMPI_Get_elements_x) ROW(PMPI_Get_library_version) \
  ROW(PMPI_Get_processor_name) ROW(PMPI_Group_free) ROW(PMPI_Group_rank) ROW(PMPI_Group_size) \
  ROW(PMPI_Group_translate_ranks) ROW(PMPI_Iallreduce) ROW(PMPI_Ibarrier) ROW(PMPI_Improbe) ROW(PMPI_Imrecv) \
  ROW(PMPI_Initialized) ROW(PMPI_Iprobe) ROW(PMPI_Ireduce_scatter_block) ROW(PMPI_Lookup_name) \
  ROW(PMPI_Mrecv) ROW(PMPI_Op_commutative) ROW(PMPI_Publish_name) ROW(PMPI_Query_thread) \
  ROW(PMPI_Recv) ROW(PMPI_Request_free) ROW(PMPI_Request_get_status) ROW(PMPI_Send) ROW(PMPI_Test) ROW(PMPI_Testsome) \
  ROW(PMPI_Type_commit) ROW(PMPI_Type_create_keyval) ROW(PMPI_Type_free) ROW(PMPI_Type_get_attr) ROW(PMPI_Type_get_extent_x) \
  ROW(PMPI_Type_get_true_extent_x) ROW(PMPI_Type_set_attr) ROW(PMPI_Type_size_x) ROW(PMPI_Unpublish_name) \
  ROW(PMPI_Isend) ROW(PMPI_Win_get_group) ROW(PMPI_Topo_test) ROW(PMPI_Cartdim_get) ROW(PMPI_Cart_shift) \
  ROW(PMPI_Graph_neighbors_count) ROW(PMPI_Graph_neighbors) ROW(PMPI_Dist_graph_neighbors_count) \
  ROW(PMPI_Dist_graph_neighbors)
#define LATECOMER_PMPI_4(ROW) \
  ROW(PMPI_Irecv_c) ROW(PMPI_Isend_c) ROW(PMPI_Pack_c) ROW(PMPI_Reduce_local_c) \
  ROW(PMPI_Sendrecv_c) ROW(PMPI_Type_create_hindexed_c) ROW(PMPI_Type_create_resized_c) ROW(PMPI_Type_create_struct_c) \
  ROW(PMPI_Type_get_contents_c) ROW(PMPI_Type_get_envelope_c) ROW(PMPI_Unpack_c)
// clang-format on

// The range library is linked with MPI like any program.
#ifndef LATECOMER_LINKS_MPI
namespace latecomer::shim {

// Inside this namespace PMPI_Wait(...) is a call through a pointer that family.cpp fills.
#define LATECOMER_POINTER(function) inline decltype(&::function) function = nullptr;
LATECOMER_PMPI(LATECOMER_POINTER)
#if MPI_VERSION >= 4
LATECOMER_PMPI_4(LATECOMER_POINTER)
LATECOMER_POINTER(PMPI_Group_from_session_pset)
#endif
#undef LATECOMER_POINTER

}  // namespace latecomer::shim
#endif

namespace latecomer::shim {
/// The largest payload of a call that is served. start_family() lowers it if the library has MPI 3.1.
inline MPI_Count most_count = MPI_VERSION >= 4 ? INT64_MAX : INT_MAX;
/// What stands for statuses that a program ignores in mpi_f08; nullptr: not known. start_family() fills it.
struct IgnoredInF08 {
  const void *status = nullptr, *statuses = nullptr;
};
inline constinit IgnoredInF08 ignored_in_f08;
/// The index of the first request in the answers of mpi_f08. MPICH 4.0 gives the index of C.
inline constinit int first_in_f08 = 1;
}  // namespace latecomer::shim
#if MPI_VERSION < 4
#include "shim/mpi/mpi_3.hpp"
namespace latecomer::shim {
using namespace mpi_3;
}
#endif

namespace latecomer::shim {

#ifdef LATECOMER_ABI
/// The numbers of the standard ABI: types of C and C++, but for pairs of a value and an index, which may have a gap. Of
/// Fortran's types, which a library may lack, nothing is known.
inline bool is_basic(MPI_Datatype type) {
  const auto number = reinterpret_cast<std::uintptr_t>(type);
  return (number > 0x200 && number < 0x218) || (number >= 0x220 && number < 0x228) ||
         (number >= 0x238 && number < 0x260);
}
#elif !defined(OPEN_MPI)
/// MPICH's handle of a basic datatype has its kind in the two upper bits. Derived types and pairs of a value and an
/// index have another.
constexpr bool is_basic(MPI_Datatype type) { return static_cast<std::uint32_t>(type) >> 30 == 1; }
static_assert(is_basic(MPI_BYTE) && is_basic(MPI_DOUBLE) && is_basic(MPI_PACKED) && !is_basic(MPI_DOUBLE_INT) &&
              !is_basic(MPI_DATATYPE_NULL));
#endif

// The family's name (profiles/base/mpi_version.hpp).
#ifdef LATECOMER_ABI
inline constexpr const char* kFamily = "abi";
#elif defined(OPEN_MPI)
inline constexpr const char* kFamily = "openmpi";
#else
inline constexpr const char* kFamily = "mpich";
#endif

/// The bits of a handle: an integer in MPICH, a pointer in Open MPI and in the standard ABI.
template <typename Handle>
std::uintptr_t bits_of(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>) return reinterpret_cast<std::uintptr_t>(handle);
  else return static_cast<std::make_unsigned_t<Handle>>(handle);
}
template <typename Handle>
Handle handle_of(std::uintptr_t bits) {
  if constexpr (std::is_pointer_v<Handle>) return reinterpret_cast<Handle>(bits);
  else return static_cast<Handle>(bits);
}

}  // namespace latecomer::shim

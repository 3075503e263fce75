// SPDX-License-Identifier: BSD-3-Clause
// The one way the shim sees MPI. The library refers to no MPI symbol. With strong references, children without MPI fail
// to start under LD_BIND_NOW=1 (measured). Weak ones stay null when the program brings MPI with
// dlopen(RTLD_LOCAL), as Python's extension modules do. entry.cpp finds the functions at the first use.
// This file lists every PMPI function that the shim calls, except the non-blocking forms that wrap.cpp lists.
#pragma once

#include <mpi.h>

// Every PMPI function that the shim calls, beside the non-blocking forms that wrap.cpp lists for itself.
// clang-format indents every line of rows further than the line before.
// clang-format off
#define LATECOMER_PMPI(ROW) \
  ROW(PMPI_Abort) ROW(PMPI_Allgather) ROW(PMPI_Allreduce) ROW(PMPI_Bcast) ROW(PMPI_Cancel) ROW(PMPI_Comm_call_errhandler) \
  ROW(PMPI_Comm_create) ROW(PMPI_Comm_create_keyval) ROW(PMPI_Comm_get_attr) ROW(PMPI_Comm_get_errhandler) \
  ROW(PMPI_Comm_get_parent) ROW(PMPI_Comm_group) ROW(PMPI_Comm_rank) ROW(PMPI_Comm_remote_group) ROW(PMPI_Comm_set_attr) \
  ROW(PMPI_Comm_set_errhandler) ROW(PMPI_Comm_size) ROW(PMPI_Comm_test_inter) ROW(PMPI_Errhandler_free) ROW(PMPI_Error_class) \
  ROW(PMPI_Finalized) ROW(PMPI_Get_count) ROW(PMPI_Get_elements_x) ROW(PMPI_Get_library_version) \
  ROW(PMPI_Get_processor_name) ROW(PMPI_Group_free) ROW(PMPI_Group_from_session_pset) ROW(PMPI_Group_rank) \
  ROW(PMPI_Group_size) ROW(PMPI_Group_translate_ranks) \
  ROW(PMPI_Iallreduce) ROW(PMPI_Ibarrier) ROW(PMPI_Improbe) ROW(PMPI_Initialized) ROW(PMPI_Iprobe) \
  ROW(PMPI_Ireduce_scatter_block) ROW(PMPI_Irecv_c) ROW(PMPI_Isend) ROW(PMPI_Isend_c) ROW(PMPI_Lookup_name) \
  ROW(PMPI_Mrecv) ROW(PMPI_Op_commutative) ROW(PMPI_Pack_c) ROW(PMPI_Publish_name) ROW(PMPI_Query_thread) \
  ROW(PMPI_Recv) ROW(PMPI_Reduce_local_c) ROW(PMPI_Request_free) ROW(PMPI_Send) ROW(PMPI_Sendrecv_c) ROW(PMPI_Test) \
  ROW(PMPI_Testsome) ROW(PMPI_Type_commit) ROW(PMPI_Type_create_hindexed_c) ROW(PMPI_Type_create_struct_c) \
  ROW(PMPI_Type_create_keyval) ROW(PMPI_Type_create_resized_c) ROW(PMPI_Type_free) ROW(PMPI_Type_get_attr) ROW(PMPI_Type_get_contents_c) \
  ROW(PMPI_Type_get_envelope_c) ROW(PMPI_Type_get_extent_x) ROW(PMPI_Type_get_true_extent_x) ROW(PMPI_Type_set_attr) \
  ROW(PMPI_Type_size_x) ROW(PMPI_Unpack_c) ROW(PMPI_Unpublish_name)
// clang-format on

// The range library is linked with MPI like any program.
#ifndef LATECOMER_LINKS_MPI
namespace latecomer::shim {

// Inside this namespace PMPI_Wait(...) is a call through a pointer that entry.cpp fills.
#define LATECOMER_POINTER(function) inline decltype(&::function) function = nullptr;
LATECOMER_PMPI(LATECOMER_POINTER)

}  // namespace latecomer::shim
#endif

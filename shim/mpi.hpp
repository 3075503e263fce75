// SPDX-License-Identifier: BSD-3-Clause
// The one way the shim sees MPI. Every PMPI function it calls is weak and the library links no MPI:
// strong references make non-MPI children fail to start under LD_BIND_NOW=1 (measured).
#pragma once

#include <mpi.h>

#define LATECOMER_EXPORT __attribute__((visibility("default")))
#define LATECOMER_STRING(x) #x
#define LATECOMER_WEAK(function) _Pragma(LATECOMER_STRING(weak function))

// Every PMPI function that the shim calls, beside those of the table in collectives.def.
#define LATECOMER_PMPI(ROW) \
  ROW(PMPI_Comm_call_errhandler) ROW(PMPI_Comm_create) ROW(PMPI_Comm_create_errhandler) \
  ROW(PMPI_Comm_create_keyval) ROW(PMPI_Comm_get_attr) ROW(PMPI_Comm_get_errhandler) ROW(PMPI_Comm_get_parent) \
  ROW(PMPI_Comm_group) ROW(PMPI_Comm_rank) ROW(PMPI_Comm_set_attr) ROW(PMPI_Comm_set_errhandler) ROW(PMPI_Comm_size) \
  ROW(PMPI_Comm_test_inter) ROW(PMPI_Errhandler_free) ROW(PMPI_Get_library_version) \
  ROW(PMPI_Get_processor_name) ROW(PMPI_Group_free) ROW(PMPI_Group_translate_ranks) ROW(PMPI_Improbe) ROW(PMPI_Iprobe) ROW(PMPI_Init) \
  ROW(PMPI_Init_thread) ROW(PMPI_Irecv_c) ROW(PMPI_Isend) ROW(PMPI_Isend_c) ROW(PMPI_Lookup_name) ROW(PMPI_Mrecv) \
  ROW(PMPI_Op_commutative) ROW(PMPI_Publish_name) ROW(PMPI_Query_thread) ROW(PMPI_Recv) ROW(PMPI_Reduce_local_c) \
  ROW(PMPI_Request_free) ROW(PMPI_Send) ROW(PMPI_Sendrecv_c) ROW(PMPI_Start) ROW(PMPI_Startall) ROW(PMPI_Test) \
  ROW(PMPI_Testall) ROW(PMPI_Testany) ROW(PMPI_Testsome) ROW(PMPI_Type_get_extent_x) ROW(PMPI_Type_get_true_extent_x) \
  ROW(PMPI_Type_size_x) ROW(PMPI_Unpublish_name) ROW(PMPI_Wait) ROW(PMPI_Waitall) ROW(PMPI_Waitany) ROW(PMPI_Waitsome) \
  ROW(PMPI_Get_count) ROW(PMPI_Ibarrier) ROW(PMPI_Allreduce) ROW(PMPI_Allgather) ROW(PMPI_Bcast) ROW(PMPI_Barrier)

LATECOMER_PMPI(LATECOMER_WEAK)

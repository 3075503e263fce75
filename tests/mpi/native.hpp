// SPDX-License-Identifier: BSD-3-Clause
// MPI's own functions, behind every preload. MPICH's PMPI functions are. Open MPI's are intercepted, because its
// Fortran bindings call them, so they are taken from the library itself.
#pragma once

#include <mpi.h>

#ifdef OPEN_MPI
#include <dlfcn.h>

#define NATIVE(function) \
  (reinterpret_cast<decltype(&function)>(dlsym(dlopen("libmpi.so.40", RTLD_LAZY | RTLD_NOLOAD), #function)))
#else
#define NATIVE(function) function
#endif

// Without counts of type MPI_Count, no call of these is reached (kLargeCounts).
inline constexpr bool kLargeCounts = MPI_VERSION >= 4;
#if MPI_VERSION < 4
#define LATECOMER_NONE(function)      \
  template <typename... Arguments>    \
  int function(const Arguments&...) { \
    return MPI_ERR_COUNT;             \
  }
LATECOMER_NONE(MPI_Gatherv_c)
LATECOMER_NONE(MPI_Scatterv_c)
LATECOMER_NONE(MPI_Type_contiguous_c)
LATECOMER_NONE(MPI_Type_create_hindexed_block_c)
LATECOMER_NONE(MPI_Type_create_hindexed_c)
LATECOMER_NONE(MPI_Type_create_hvector_c)
LATECOMER_NONE(MPI_Type_create_indexed_block_c)
LATECOMER_NONE(MPI_Type_create_resized_c)
LATECOMER_NONE(MPI_Type_create_struct_c)
LATECOMER_NONE(MPI_Type_create_subarray_c)
LATECOMER_NONE(MPI_Type_indexed_c)
LATECOMER_NONE(MPI_Type_vector_c)
#endif

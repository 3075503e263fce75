// SPDX-License-Identifier: BSD-3-Clause
// What differs between MPI libraries beneath equal handles: a row per library. A family of one library has its row when
// it is compiled. The standard ABI has the same handles on each, so its family finds the row when it starts.
#pragma once

#include <cstdint>
#include <string_view>

#include "shim/mpi/api.hpp"

namespace latecomer::shim {

/// A group has the same operators (shim/mpi/operators.hpp).
enum TypeGroup : std::uint8_t {
  kInteger = 1,
  kFloating = 2,
  kLogical = 4,
  kComplex = 8,
  kByte = 16,
  kPair = 32,
  kUnnamedInteger = 64,  ///< of Fortran, without logical operators: MPI_INTEGER in Open MPI, all in MPICH 5
};

struct Beneath {
  std::string_view mpi;    ///< of its native family and launcher (mpi_version.hpp, launchers.hpp)
  const char* progress;    ///< the function in which it waits
  const char* ranks_here;  ///< the launcher's variable with the number of ranks on this host
  const char* ranks_init;  ///< the one that yield_during_init() compares with the number of cores
  bool by_pmix;            ///< a daemon of PMIx serves the ranks, and no process manager through PMI_FD
  bool polls_files;        ///< without a lock: file_progress.cpp
  /// The class of its error for MPI_IN_PLACE where a rooted reduction, gather or scatter has none, and for one buffer
  /// for both sides of a reduce.
  int refused_rooted;
  /// One buffer for input and output: it runs an allreduce of one item, and gathers and scatters, as if in place.
  bool takes_one_buffer;
  /// TypeGroup of MPI_BYTE; of MPI_INTEGER and MPI_INTEGER4; of Fortran's other integers; of other types.
  std::uint8_t of_byte, of_integer, of_sized_integer, of_character, of_complex32, of_small_logical;
  std::uint8_t truth;  ///< the groups with logical operators
};

inline constexpr Beneath kMpich4 = {"mpich",
                                    "ucp_worker_progress",
                                    "MPI_LOCALNRANKS",
                                    "PMI_SIZE",
                                    false,
                                    false,
                                    MPI_ERR_BUFFER,
                                    false,
                                    kByte,
                                    kInteger,
                                    kInteger,
                                    kInteger,
                                    0,
                                    kLogical,
                                    kInteger | kLogical | kFloating};
inline constexpr Beneath kMpich5 = {
    "mpich", "ucp_worker_progress", "MPI_LOCALNRANKS", "PMI_SIZE", false,    false,    MPI_ERR_BUFFER,     false,
    kByte,   kUnnamedInteger,       kUnnamedInteger,   0,          kComplex, kLogical, kInteger | kLogical};
inline constexpr Beneath kOpenMpi = {"openmpi",
                                     "opal_progress",
                                     "OMPI_COMM_WORLD_LOCAL_SIZE",
                                     "OMPI_COMM_WORLD_LOCAL_SIZE",
                                     true,
                                     true,
                                     MPI_ERR_ARG,
                                     true,
                                     kInteger,
                                     kUnnamedInteger,
                                     kInteger,
                                     kInteger,
                                     kComplex,
                                     kInteger,
                                     kInteger | kLogical};

#ifdef LATECOMER_ABI

/// Finds the row of the library that runs. Returns false for a library without a row.
bool find_beneath();
inline const Beneath* row_beneath = nullptr;
inline const Beneath& beneath() { return *row_beneath; }

#else

constexpr const Beneath& beneath() {
#ifdef OPEN_MPI
  return kOpenMpi;
#else
  return kMpich4;
#endif
}

#endif

}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// What differs between MPI libraries beneath equal handles: a row per library, and where a version changed something,
// per version. A family finds its row when it starts. The standard ABI has the same handles on each library.
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
  std::uint8_t truth;      ///< the groups with MPI_LAND and MPI_LOR
  std::uint8_t truth_xor;  ///< with MPI_LXOR
};

inline constexpr Beneath kMpich4 = {
    .mpi = "mpich",
    .progress = "ucp_worker_progress",
    .ranks_here = "MPI_LOCALNRANKS",
    .ranks_init = "PMI_SIZE",
    .by_pmix = false,
    .polls_files = false,
    .refused_rooted = MPI_ERR_BUFFER,
    .takes_one_buffer = false,
    .of_byte = kByte,
    .of_integer = kInteger,
    .of_sized_integer = kInteger,
    .of_character = kInteger,
    .of_complex32 = 0,
    .of_small_logical = kLogical,
    .truth = kInteger | kLogical | kFloating,
    .truth_xor = kInteger | kLogical | kFloating,
};
/// Measured on 4.2.1 (the test type_table).
inline constexpr Beneath kMpich42 = [] {
  Beneath row = kMpich4;
  row.truth_xor = kInteger | kLogical;
  return row;
}();
inline constexpr Beneath kMpich5 = [] {
  Beneath row = kMpich42;
  row.of_integer = row.of_sized_integer = kUnnamedInteger;
  row.of_character = 0;
  row.of_complex32 = kComplex;
  row.truth = kInteger | kLogical;
  return row;
}();
inline constexpr Beneath kOpenMpi = {
    .mpi = "openmpi",
    .progress = "opal_progress",
    .ranks_here = "OMPI_COMM_WORLD_LOCAL_SIZE",
    .ranks_init = "OMPI_COMM_WORLD_LOCAL_SIZE",
    .by_pmix = true,
    .polls_files = true,
    .refused_rooted = MPI_ERR_ARG,
    .takes_one_buffer = true,
    .of_byte = kInteger,
    .of_integer = kUnnamedInteger,
    .of_sized_integer = kInteger,
    .of_character = kInteger,
    .of_complex32 = kComplex,
    .of_small_logical = kInteger,
    .truth = kInteger | kLogical,
    .truth_xor = kInteger | kLogical,
};

/// A row, and the version from which on it holds: 402 is 4.2.
struct Since {
  int version;
  const Beneath* row;
};
#ifdef LATECOMER_ABI
// The first versions with the ABI of the standard. Those before had drafts of it.
inline constexpr Since kBeneath[] = {{500, &kMpich5}, {600, &kOpenMpi}};
inline const Beneath* row_beneath = nullptr;
#else
#ifdef OPEN_MPI
inline constexpr Since kBeneath[] = {{0, &kOpenMpi}};
#else
inline constexpr Since kBeneath[] = {{0, &kMpich4}, {402, &kMpich42}, {500, &kMpich5}};
#endif
inline const Beneath* row_beneath = kBeneath[0].row;  // also of a library that only the user has named
#endif

/// Finds the row of the library that runs. Returns false for a library without a row.
bool find_beneath();
inline const Beneath& beneath() { return *row_beneath; }

}  // namespace latecomer::shim

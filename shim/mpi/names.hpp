// SPDX-License-Identifier: BSD-3-Clause
// The names of MPI's libraries.
#pragma once

#include <cstring>

namespace latecomer::shim {

inline const char* base_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash ? slash + 1 : path;
}

template <std::size_t N>
bool begins_with_any(const char* name, const char* const (&prefixes)[N]) {
  for (const char* prefix : prefixes)
    if (std::strncmp(name, prefix, std::strlen(prefix)) == 0) return true;
  return false;
}

/// A library whose frames are no call sites: MPI, its bindings and plugins, and latecomer.
inline bool is_mpi_library(const char* path) {
  static constexpr const char* kPrefixes[] = {"libmpich", "libmpi.",  "libmpifort",  "libmpicxx", "libmpi_",
                                              "libpmpi",  "libopen-", "libopen_mpi", "mca_",      "liblatecomer"};
  return begins_with_any(base_name(path), kPrefixes);
}

/// A library of MPI whose calls of MPI's functions are not the program's. The Fortran and C++ bindings (libmpi_*,
/// libmpichfort) call for the program.
inline bool is_inside_mpi(const char* path) {
  static constexpr const char* kPrefixes[] = {"libmpi.", "libmpich.", "libopen-",    "libopen_mpi",
                                              "mca_",    "libpmix",   "liblatecomer"};
  return begins_with_any(base_name(path), kPrefixes);
}

}  // namespace latecomer::shim

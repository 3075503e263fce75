// SPDX-License-Identifier: BSD-3-Clause
// The library beneath tells itself by the text of its version. That of the standard ABI is the text of its native
// interface.
#include "shim/mpi/beneath.hpp"

#include <cstdio>
#include <cstring>

#include "profiles/base/mpi_version.hpp"

namespace latecomer::shim {

bool find_beneath() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0, major = 0, minor = 0;
  PMPI_Get_library_version(text, &length);
  const auto* family = profiles::family_of(text);
  const char* const number = std::strpbrk(text, "0123456789");
  if (family && number && std::sscanf(number, "%d.%d", &major, &minor) == 2)
    for (const auto& [first, row] : kBeneath)
      if (family->name == row->mpi && 100 * major + minor >= first) row_beneath = row;
  return row_beneath != nullptr;
}

}  // namespace latecomer::shim

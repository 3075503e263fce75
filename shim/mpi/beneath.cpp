// SPDX-License-Identifier: BSD-3-Clause
// The library beneath the standard ABI tells itself by the text of its version, which is that of its native interface.
#include "shim/mpi/beneath.hpp"

#ifdef LATECOMER_ABI

#include <initializer_list>

#include "profiles/base/mpi_version.hpp"

namespace latecomer::shim {

bool find_beneath() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  PMPI_Get_library_version(text, &length);
  const auto* family = profiles::family_of(text);
  for (const Beneath* row : {&kMpich5, &kOpenMpi})
    if (family && family->name == row->mpi) row_beneath = row;
  return row_beneath != nullptr;
}

}  // namespace latecomer::shim

#endif

// SPDX-License-Identifier: BSD-3-Clause
// The library beneath the standard ABI tells itself by the text of its version, which is that of its native interface.
#include "shim/mpi/beneath.hpp"

#ifdef LATECOMER_ABI

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "profiles/base/mpi_version.hpp"

namespace latecomer::shim {

bool find_beneath() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  PMPI_Get_library_version(text, &length);
  const auto* family = profiles::family_of(text);
  // The first versions with the ABI of the standard. Those before had drafts of it.
  for (const auto& [row, first] : {std::pair(&kMpich5, 5), std::pair(&kOpenMpi, 6)}) {
    const char* const number = std::strpbrk(text, "0123456789");
    if (family && family->name == row->mpi && number && std::atoi(number) >= first) row_beneath = row;
  }
  return row_beneath != nullptr;
}

}  // namespace latecomer::shim

#endif

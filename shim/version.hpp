// SPDX-License-Identifier: BSD-3-Clause
// Which MPI library a process runs, from the text of MPI_Get_library_version. Needs no MPI: a unit test reads it.
#pragma once

#include <string_view>

namespace latecomer::shim {

/// Whether the text names a release of MPICH 4: "MPICH Version:", blanks, "4.", more. MPICH 4.0 puts a tab there, 4.2
/// spaces. Every release of MPICH 4 keeps the handles and constants that this library was built with.
constexpr bool is_mpich_4(std::string_view text) {
  constexpr std::string_view label = "MPICH Version:";
  if (!text.starts_with(label)) return false;
  text.remove_prefix(label.size());
  const auto version = text.find_first_not_of(" \t");
  if (version == text.npos || version == 0) return false;
  text.remove_prefix(version);
  return text.size() > 2 && text.starts_with("4.") && text[2] >= '0' && text[2] <= '9';
}

}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// Which MPI library a process runs, from the text of MPI_Get_library_version. Needs no MPI: a unit test reads it.
#pragma once

#include <string_view>

namespace latecomer::profiles {

/// The family of an MPI library: its name, as in the file liblatecomer-NAME.so, and how its version texts begin. Blanks
/// may follow the label, and a digit must follow the dot. MPICH 4.0 writes a tab there, 4.2 spaces. Every release of
/// MPICH 4 keeps the handles and constants of 4.0, and every release of Open MPI 4 those of 4.0.
struct Known {
  std::string_view name, label, version, title;
};
inline constexpr Known kFamilies[] = {{"mpich", "MPICH Version:", "4.", "MPICH 4"},
                                      {"openmpi", "Open MPI", "v4.", "Open MPI 4"}};

/// The standard ABI, whose handles are the same in every library that has it.
inline constexpr Known kAbi = {"abi", "", "", "MPI's standard ABI"};

/// The family of that name; nullptr: no known family.
constexpr const Known* family_named(std::string_view name) {
  for (const Known& family : kFamilies)
    if (family.name == name) return &family;
  return name == kAbi.name ? &kAbi : nullptr;
}

/// nullptr: no known family.
constexpr const Known* family_of(std::string_view text) {
  for (const Known& family : kFamilies) {
    if (!text.starts_with(family.label)) continue;
    std::string_view rest = text.substr(family.label.size());
    const auto version = rest.find_first_not_of(" \t");
    if (version == rest.npos || version == 0) continue;
    rest.remove_prefix(version);
    if (!rest.starts_with(family.version)) continue;
    rest.remove_prefix(family.version.size());
    if (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') return &family;
  }
  return nullptr;
}

}  // namespace latecomer::profiles

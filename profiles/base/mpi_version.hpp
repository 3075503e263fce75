// SPDX-License-Identifier: BSD-3-Clause
// Which MPI library a process runs, from the text of MPI_Get_library_version. Needs no MPI: a unit test reads it.
#pragma once

#include <algorithm>
#include <string_view>

namespace latecomer::profiles {

/// The family of an MPI library: its name, as in the file liblatecomer-NAME.so, and how its version texts begin. Blanks
/// may follow the label, one of the versions follows, and a digit must follow the dot. MPICH 4.0 writes a tab
/// there, 4.2 spaces. The handles and constants of the first release of a family are those of all its versions.
struct Known {
  std::string_view name, label, versions, title;
};
inline constexpr Known kFamilies[] = {{"mpich", "MPICH Version:", "4. 5.", "MPICH"},
                                      {"openmpi", "Open MPI", "v4. v5. v6.", "Open MPI"}};

/// The versions of kFamilies, for messages.
inline constexpr const char* kKnownVersions = "MPICH 4 or 5, or Open MPI 4, 5 or 6";

/// The standard ABI, whose handles are the same in every library that has it. No text of a version tells it: the
/// library answers MPI_Abi_get_version, with -1 where it has its own interface. Each major version has handles of its
/// own.
inline constexpr int kAbiMajor = 1;
inline constexpr Known kAbi = {"abi", "", "", "MPI's standard ABI"};

/// The family of that name; nullptr: no known family.
constexpr const Known* family_named(std::string_view name) {
  for (const Known& family : kFamilies)
    if (family.name == name) return &family;
  return name == kAbi.name ? &kAbi : nullptr;
}

/// Whether the text begins with one of the words of `list`, and a digit follows.
constexpr bool begins_with_version(std::string_view text, std::string_view list) {
  while (!list.empty()) {
    const std::string_view word = list.substr(0, list.find(' '));
    if (text.size() > word.size() && text.starts_with(word) && text[word.size()] >= '0' && text[word.size()] <= '9')
      return true;
    list.remove_prefix(std::min(list.size(), word.size() + 1));
  }
  return false;
}

/// nullptr: no known family.
constexpr const Known* family_of(std::string_view text) {
  for (const Known& family : kFamilies) {
    if (!text.starts_with(family.label)) continue;
    const std::string_view rest = text.substr(family.label.size());
    const auto version = rest.find_first_not_of(" \t");
    if (version == rest.npos || version == 0) continue;
    if (begins_with_version(rest.substr(version), family.versions)) return &family;
  }
  return nullptr;
}

}  // namespace latecomer::profiles

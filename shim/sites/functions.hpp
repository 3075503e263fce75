// SPDX-License-Identifier: BSD-3-Clause
// The functions of this process that hold addresses, by the symbol tables of its modules.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/record/record.hpp"

namespace latecomer::shim {

/// One place for each address. The offset of its frame is that of a return address whose code is at the address. All
/// addresses of MPI, of a Python interpreter, and those that lie in no symbol of their module are one place, a whole
/// module. Reads the files of the modules: call it at the end.
std::vector<profiles::CodePlace> places_of(const std::vector<std::uintptr_t>& addresses);
/// The whole function of a place.
profiles::CodePlace whole_function(const profiles::CodePlace& place);

/// Whether the address is one of the program itself, which is never unloaded.
bool in_program(std::uintptr_t address);

}  // namespace latecomer::shim

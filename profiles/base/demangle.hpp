// SPDX-License-Identifier: BSD-3-Clause
// The name of a symbol as its source has it.
#pragma once

#include <cxxabi.h>

#include <cstdlib>
#include <string>

namespace latecomer::profiles {

/// Returns a name that is not of C++ as it is, and "" for a nullptr.
inline std::string demangled(const char* symbol) {
  if (!symbol) return "";
  int status = 0;
  char* name = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  std::string out = status == 0 ? name : symbol;
  std::free(name);
  return out;
}

}  // namespace latecomer::profiles

// SPDX-License-Identifier: BSD-3-Clause
// Resolves the names of call sites from the symbol tables and debug information of the modules.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace latecomer::profiles {

struct SymbolName {
  std::string function;  ///< "" if unknown
  std::string file;      ///< "" without debug information
  int line = 0;
};

/// The names of one return address.
struct SymbolNames {
  /// The function that contains the code, then the functions that it is inlined into, outwards. Each function has its
  /// own file and line. One element without inlining; empty if nothing is known.
  std::vector<SymbolName> chain;
};

inline constexpr char kNotHere[] = "is not on this machine", kChanged[] = "has been rebuilt or replaced",
                      kNoDebugInformation[] = "has no debug information";
inline constexpr const char* kGaps[] = {kNotHere, kChanged, kNoDebugInformation};

class Symbols {
 public:
  Symbols();
  ~Symbols();
  /// Resolves the code before the return address `offset` (the module's own addresses). Returns no names if the module
  /// is missing or has another build-id.
  SymbolNames resolve(const std::string& module, const std::string& build_id, std::uint64_t offset);
  /// Says why lines of the module are unknown, and the remedy: a sentence without its subject, which begins as one of
  /// kGaps. "" if nothing is missing.
  std::string gap(const std::string& module, const std::string& build_id);

 private:
  struct Module;
  Module& open(const std::string& path);
  std::map<std::string, std::unique_ptr<Module>> modules_;
};

}  // namespace latecomer::profiles

// SPDX-License-Identifier: BSD-3-Clause
// Resolves the names of call sites from the symbol tables and debug information of the modules.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace latecomer::cli {

struct SymbolName {
  std::string function;  ///< "" if unknown
  std::string file;      ///< "" without debug information
  int line = 0;
};

class Symbols {
 public:
  Symbols();
  ~Symbols();
  /// Resolves the code before the return address `offset` (the module's own addresses). Returns no names if the module
  /// is missing or has another build-id.
  SymbolName resolve(const std::string& module, const std::string& build_id, std::uint64_t offset);

 private:
  struct Module;
  std::map<std::string, std::unique_ptr<Module>> modules_;
};

}  // namespace latecomer::cli

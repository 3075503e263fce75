// SPDX-License-Identifier: BSD-3-Clause
// Names of call sites, resolved after the run from the modules' symbol tables and debug information.
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
  /// The code before return address `offset` (the module's own addresses). A module that has changed since
  /// (another build-id) or is gone gives no names.
  SymbolName resolve(const std::string& module, const std::string& build_id, std::uint64_t offset);

 private:
  struct Module;
  std::map<std::string, std::unique_ptr<Module>> modules_;
};

}  // namespace latecomer::cli

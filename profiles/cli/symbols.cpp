// SPDX-License-Identifier: BSD-3-Clause
// Resolves symbol names with elfutils' libdwfl.
#include "profiles/cli/symbols.hpp"

#include <cxxabi.h>
#include <elfutils/libdwfl.h>

#include <cstdlib>

namespace latecomer::cli {

struct Symbols::Module {
  Dwfl* dwfl = nullptr;
  Dwfl_Module* module = nullptr;
  GElf_Addr bias = 0;
  std::string build_id;
  ~Module() {
    if (dwfl) dwfl_end(dwfl);
  }
};

Symbols::Symbols() = default;
Symbols::~Symbols() = default;

SymbolName Symbols::resolve(const std::string& path, const std::string& build_id, std::uint64_t offset) {
  auto& entry = modules_[path];
  if (!entry) {
    entry = std::make_unique<Module>();
    static char* no_path = nullptr;
    static const Dwfl_Callbacks callbacks = {dwfl_build_id_find_elf, dwfl_standard_find_debuginfo,
                                             dwfl_offline_section_address, &no_path};
    entry->dwfl = dwfl_begin(&callbacks);
    if (entry->dwfl) {
      entry->module = dwfl_report_offline(entry->dwfl, "", path.c_str(), -1);
      dwfl_report_end(entry->dwfl, nullptr, nullptr);
    }
    if (entry->module) {
      dwfl_module_getelf(entry->module, &entry->bias);
      const unsigned char* bits = nullptr;
      GElf_Addr where = 0;
      const int length = dwfl_module_build_id(entry->module, &bits, &where);
      for (int i = 0; i < length; ++i) {
        constexpr char kDigits[] = "0123456789abcdef";
        entry->build_id += kDigits[bits[i] >> 4];
        entry->build_id += kDigits[bits[i] & 15];
      }
    }
  }
  SymbolName name;
  if (!entry->module || offset == 0 || (!build_id.empty() && build_id != entry->build_id)) return name;
  const Dwarf_Addr address = offset - 1 + entry->bias;
  if (const char* symbol = dwfl_module_addrname(entry->module, address)) {
    int status = 0;
    char* readable = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
    name.function = status == 0 ? readable : symbol;
    std::free(readable);
  }
  if (Dwfl_Line* line = dwfl_module_getsrc(entry->module, address))
    if (const char* file = dwfl_lineinfo(line, nullptr, &name.line, nullptr, nullptr, nullptr)) name.file = file;
  return name;
}

}  // namespace latecomer::cli

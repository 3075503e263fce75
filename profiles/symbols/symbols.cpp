// SPDX-License-Identifier: BSD-3-Clause
// Resolves symbol names with elfutils' libdwfl.
#include "profiles/symbols/symbols.hpp"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "profiles/base/demangle.hpp"

namespace latecomer::profiles {

namespace {

/// The name of a function in debug information: with its scope and arguments where the language has them.
std::string name_of(Dwarf_Die* function) {
  Dwarf_Attribute attribute;
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name})
    if (dwarf_attr_integrate(function, name, &attribute)) return demangled(dwarf_formstring(&attribute));
  const char* plain = dwarf_diename(function);
  return plain ? plain : "";
}

/// The place of the call that was inlined.
void read_call(Dwarf_Die* inlined, Dwarf_Files* files, SymbolName& to) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &value) == 0 && files)
    if (const char* file = dwarf_filesrc(files, value, nullptr, nullptr)) to.file = file;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &value) == 0) to.line = static_cast<int>(value);
}

}  // namespace

struct Symbols::Module {
  Dwfl* dwfl = nullptr;
  Dwfl_Module* module = nullptr;
  GElf_Addr bias = 0;
  std::string build_id;
  ~Module() {
    if (dwfl) dwfl_end(dwfl);
  }

  bool is(const std::string& id) const { return module && (id.empty() || id == build_id); }

  /// The functions whose code holds the address, innermost first, without the place in the innermost.
  std::vector<SymbolName> chain(Dwarf_Addr address) const {
    std::vector<SymbolName> out(1);
    Dwarf_Addr shift = 0;
    Dwarf_Die* unit = dwfl_module_addrdie(module, address, &shift);
    Dwarf_Die* scopes = nullptr;
    if (!unit || dwarf_getscopes(unit, address - shift, &scopes) <= 0) return out;
    // From an inlined function, dwarf_getscopes goes on to the place of its source. These scopes go on to its caller.
    Dwarf_Die* outwards = nullptr;
    const int count = dwarf_getscopes_die(&scopes[0], &outwards);
    std::free(scopes);
    Dwarf_Files* files = nullptr;
    std::size_t number = 0;
    dwarf_getsrcfiles(unit, &files, &number);
    for (int i = 0; i < count; ++i) {
      const int tag = dwarf_tag(&outwards[i]);
      if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
      out.back().function = name_of(&outwards[i]);
      if (tag == DW_TAG_subprogram) break;
      read_call(&outwards[i], files, out.emplace_back());
    }
    std::free(outwards);
    return out;
  }
};

Symbols::Symbols() = default;
Symbols::~Symbols() = default;

Symbols::Module& Symbols::open(const std::string& path) {
  auto& entry = modules_[path];
  if (entry) return *entry;
  entry = std::make_unique<Module>();
  struct stat about {};
  if (stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return *entry;  // a pipe waits for its writer
  static char* no_path = nullptr;
  static const Dwfl_Callbacks callbacks = {dwfl_build_id_find_elf, dwfl_standard_find_debuginfo,
                                           dwfl_offline_section_address, &no_path};
  entry->dwfl = dwfl_begin(&callbacks);
  if (entry->dwfl) {
    entry->module = dwfl_report_offline(entry->dwfl, "", path.c_str(), -1);
    dwfl_report_end(entry->dwfl, nullptr, nullptr);
  }
  if (!entry->module) return *entry;
  dwfl_module_getelf(entry->module, &entry->bias);
  const unsigned char* bits = nullptr;
  GElf_Addr where = 0;
  const int length = dwfl_module_build_id(entry->module, &bits, &where);
  for (int i = 0; i < length; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    entry->build_id += kDigits[bits[i] >> 4];
    entry->build_id += kDigits[bits[i] & 15];
  }
  return *entry;
}

SymbolNames Symbols::resolve(const std::string& path, const std::string& build_id, std::uint64_t offset) {
  Module& module = open(path);
  SymbolNames out;
  if (offset == 0 || !module.is(build_id)) return out;
  const Dwarf_Addr address = offset - 1 + module.bias;
  out.chain = module.chain(address);
  // The symbol names the function that the compiler made, which inlining has put around the others.
  if (const char* symbol = dwfl_module_addrname(module.module, address)) out.chain.back().function = demangled(symbol);
  SymbolName& inner = out.chain.front();
  if (Dwfl_Line* line = dwfl_module_getsrc(module.module, address))
    if (const char* file = dwfl_lineinfo(line, nullptr, &inner.line, nullptr, nullptr, nullptr)) inner.file = file;
  if (inner.function.empty() && inner.file.empty()) out.chain.clear();
  return out;
}

std::string Symbols::gap(const std::string& path, const std::string& build_id) {
  Module& module = open(path);
  constexpr char kLost[] =
      ", so names that the profile lacks are unknown; latecomer run puts names into the profile at the end of the job";
  if (!module.module) return std::string(kNotHere) + ", or has been moved" + kLost;
  if (!module.is(build_id)) return std::string(kChanged) + " since the run" + kLost;
  Dwarf_Addr shift = 0;
  if (dwfl_module_getdwarf(module.module, &shift)) return "";
  // Nobody compiles an interpreter for a program that it runs.
  const std::string base = path.substr(path.rfind('/') + 1);
  const bool interpreter = base.starts_with("python") || base.starts_with("libpython");
  return std::string(kNoDebugInformation) + ", so its lines are unknown; " +
         (interpreter ? "install" : "compile it with -g, or install") +
         " its debug symbols (on Debian its -dbgsym package, elsewhere a debuginfod server in DEBUGINFOD_URLS)";
}

}  // namespace latecomer::profiles

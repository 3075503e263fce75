// SPDX-License-Identifier: BSD-3-Clause
// Names that the dynamic symbols of this process's modules give. They stay true after a module was moved or rebuilt.
// The command resolves all other names, from symbol tables and debug information, after the job.
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <string>
#include <vector>

#include "profiles/base/demangle.hpp"
#include "shim/clock.hpp"
#include "shim/sites/modules.hpp"
#include "shim/sites/names.hpp"

namespace latecomer::shim {
namespace {

/// The longest time to delay the end of the job. Measured: a look takes 8 us in a module with 6,000 dynamic symbols, so
/// 10,000 frames of such a module are named.
constexpr Nanoseconds kLongest = 100'000'000;

/// The function whose code holds the address, or "".
std::string function_at(std::uintptr_t address) {
  Dl_info info{};
  void* entry = nullptr;
  if (!dladdr1(reinterpret_cast<const void*>(address), &info, &entry, RTLD_DL_SYMENT)) return "";
  // Check the size: a function without a symbol would else get the name of the symbol before it.
  const auto* symbol = static_cast<const ElfW(Sym)*>(entry);
  if (!symbol || !info.dli_sname || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
      address - reinterpret_cast<std::uintptr_t>(info.dli_saddr) >= symbol->st_size)
    return "";
  return profiles::demangled(info.dli_sname);
}

}  // namespace

void name_frames(const std::vector<profiles::Frame*>& frames) {
  const std::vector<LoadedModule> modules = loaded_modules();
  const Nanoseconds until = now() + kLongest;
  for (profiles::Frame* f : frames) {
    // Another rank's file of the same name may differ, unless it has the same build-id.
    if (!f->function.empty() || f->offset == 0 || f->build_id.empty()) continue;
    const auto module = std::ranges::find_if(
        modules, [&](const LoadedModule& m) { return m.build_id == f->build_id && m.path == f->module; });
    if (module != modules.end()) f->function = function_at(module->base + f->offset - 1);
    if (now() > until) return;
  }
}

}  // namespace latecomer::shim

// SPDX-License-Identifier: BSD-3-Clause
// liblatecomer_symbols.so: resolves names of call sites inside a running job. The shim loads it only if the policy's
// rules name functions or lines, so other processes do not load elfutils.
#include <algorithm>
#include <cstring>

#include "profiles/symbols/symbols.hpp"

/// Fills function and file (each `size` bytes, terminated) and line of the function `level` levels outside the
/// innermost one, which is 0. Returns 0, or 1 if there is no such function, or its name is unknown.
extern "C" __attribute__((visibility("default"))) int latecomer_symbols_resolve(const char* module,
                                                                                const char* build_id,
                                                                                unsigned long long offset, int level,
                                                                                char* function, char* file,
                                                                                unsigned long size, int* line) {
  try {
    static latecomer::profiles::Symbols symbols;
    const auto chain = symbols.resolve(module, build_id, offset).chain;
    if (level < 0 || static_cast<std::size_t>(level) >= chain.size()) return 1;
    const auto& name = chain[static_cast<std::size_t>(level)];
    const auto copy = [&](const std::string& text, char* to) {
      const std::size_t n = std::min<std::size_t>(text.size(), size - 1);
      std::memcpy(to, text.data(), n);
      to[n] = '\0';
    };
    copy(name.function, function);
    copy(name.file, file);
    *line = name.line;
    return 0;
  } catch (...) {
    return 1;
  }
}

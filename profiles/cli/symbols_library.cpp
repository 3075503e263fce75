// SPDX-License-Identifier: BSD-3-Clause
// liblatecomer_symbols.so: resolves names of call sites inside a running job. The shim loads it only if the policy's
// rules name functions or lines, so other processes do not load elfutils.
#include <algorithm>
#include <cstring>

#include "profiles/cli/symbols.hpp"

/// Fills function and file (each `size` bytes, terminated) and line. Returns 0, or 1 if the name is unknown.
extern "C" __attribute__((visibility("default"))) int latecomer_symbols_resolve(const char* module,
                                                                                const char* build_id,
                                                                                unsigned long long offset,
                                                                                char* function, char* file,
                                                                                unsigned long size, int* line) {
  try {
    static latecomer::cli::Symbols symbols;
    const auto name = symbols.resolve(module, build_id, offset);
    const auto copy = [&](const std::string& text, char* to) {
      const std::size_t n = std::min<std::size_t>(text.size(), size - 1);
      std::memcpy(to, text.data(), n);
      to[n] = '\0';
    };
    copy(name.function, function);
    copy(name.file, file);
    *line = name.line;
    return name.function.empty() && name.file.empty() ? 1 : 0;
  } catch (...) {
    return 1;
  }
}

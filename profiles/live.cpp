// SPDX-License-Identifier: BSD-3-Clause
// Reads the state of a process from /proc.
#include "profiles/live.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace latecomer::profiles {

ProcessState process_state(int pid) {
  ProcessState out;
  char path[64], text[1024] = {};
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  std::FILE* file = std::fopen(path, "r");
  if (!file) return out;
  const std::size_t got = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  // The name in brackets may hold spaces and brackets. The state follows the last bracket, the start is field 22.
  const char* at = got > 0 ? std::strrchr(text, ')') : nullptr;
  if (!at || at[1] != ' ') return out;
  out.exists = true, out.state = at[2];
  at += 2;
  for (int field = 3; field < 22 && at; ++field) at = std::strchr(at + 1, ' ');
  if (at) out.started = std::strtoull(at, nullptr, 10);
  return out;
}

}  // namespace latecomer::profiles

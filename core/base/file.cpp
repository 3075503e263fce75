// SPDX-License-Identifier: BSD-3-Clause
// Reads with the C library, whose errors have a reason.
#include "core/base/file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace latecomer::core {

Result<std::string> read_file(const std::string& path) {
  std::string out;
  std::FILE* const file = std::fopen(path.c_str(), "re");
  int error = file ? 0 : errno;
  if (file) {
    char part[1 << 14];
    for (std::size_t got; (got = std::fread(part, 1, sizeof part, file)) > 0;) out.append(part, got);
    if (std::ferror(file)) error = errno;
    std::fclose(file);
  }
  if (error != 0) return Error{"cannot read '" + path + "': " + std::strerror(error)};
  return out;
}

}  // namespace latecomer::core

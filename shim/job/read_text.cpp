// SPDX-License-Identifier: BSD-3-Clause
// Reads whole files: the policy, and files in /proc.
#include <fstream>
#include <sstream>

#include "shim/job/parts.hpp"

namespace latecomer::shim {

std::string read_text(const std::string& path, bool& good) {
  std::ifstream in(path);
  good = static_cast<bool>(in);
  std::ostringstream text;
  if (good) text << in.rdbuf();
  return text.str();
}

}  // namespace latecomer::shim

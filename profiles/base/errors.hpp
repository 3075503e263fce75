// SPDX-License-Identifier: BSD-3-Clause
// The error of a command whose arguments or files are wrong.
#pragma once

#include <stdexcept>
#include <string>

namespace latecomer::profiles {

/// Bad usage that the option parser cannot detect. Ends the command with status 2.
struct BadUsage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A file cannot be read.
struct CannotRead : BadUsage {
  CannotRead(const std::string& path, const std::string& problem)
      : BadUsage("cannot read '" + path + "': " + problem), file(path) {}
  std::string file;
};

}  // namespace latecomer::profiles

// SPDX-License-Identifier: BSD-3-Clause
// Reads files that the user has named. Files that other users may have placed need profiles/files/shared_folder.hpp.
#pragma once

#include <string>

#include "core/base/result.hpp"

namespace latecomer::core {

/// The bytes of a file or a pipe, up to its end. The error names the file and the reason.
Result<std::string> read_file(const std::string& path);

}  // namespace latecomer::core

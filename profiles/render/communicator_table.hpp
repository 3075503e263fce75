// SPDX-License-Identifier: BSD-3-Clause
// Waiting by communicator.
#pragma once

#include "profiles/format/reader.hpp"

namespace latecomer::cli {

/// Prints the `most` communicators in which ranks waited longest; nothing if the job has only one.
void print_communicators(const Profile& profile, int most);

}  // namespace latecomer::cli

// SPDX-License-Identifier: BSD-3-Clause
// Waiting by communicator.
#pragma once

#include <nlohmann/json.hpp>

namespace latecomer::cli {

/// Prints the `most` communicators in which ranks waited longest; nothing if the job has only one.
void print_communicators(const nlohmann::ordered_json& profile, int most);

}  // namespace latecomer::cli

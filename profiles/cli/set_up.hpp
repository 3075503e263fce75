// SPDX-License-Identifier: BSD-3-Clause
// What is wrong with the set-up of a run: ranks, cores, binding, waiting and hosts. docs/explanation/causes.md
// describes the estimates.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace latecomer::cli {

/// One sentence for each finding, the gravest first. `profile`: as load_profile() reads it. A statement that the data
/// do not support is left out.
std::vector<std::string> set_up(const nlohmann::ordered_json& profile);

}  // namespace latecomer::cli

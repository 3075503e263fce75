// SPDX-License-Identifier: BSD-3-Clause
// The table of call sites that `report` and `top` print.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace latecomer::cli {

/// The ranks that come last most often, with their share of the site's calls.
std::string last_ranks(const nlohmann::ordered_json& site, std::size_t most);

/// Prints the first `most` sites in the order of the profile, and what the columns mean.
void print_sites(const nlohmann::ordered_json& profile, int most);

}  // namespace latecomer::cli

// SPDX-License-Identifier: BSD-3-Clause
// The report as one self-contained HTML page: no scripts, nothing fetched, plots as inline SVG.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace latecomer::cli {

/// `profile`: names resolved, sites in the order to show.
std::string html_report(const nlohmann::ordered_json& profile);

}  // namespace latecomer::cli

// SPDX-License-Identifier: BSD-3-Clause
// The report as one self-contained HTML page: it needs no scripts and no network, and its plots are inline SVG.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace latecomer::cli {

/// `profile` has resolved names, and its sites are in display order.
std::string html_report(const nlohmann::ordered_json& profile);

}  // namespace latecomer::cli

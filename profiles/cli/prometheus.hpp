// SPDX-License-Identifier: BSD-3-Clause
// A profile in the text format of Prometheus.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace latecomer::cli {

/// Seconds that ranks waited and were waited for, how often they came last, and their mean lateness, by rank and by
/// call site. The text holds the first `sites` sites of the profile, `ranks` ranks, and `ranks` ranks per site.
std::string prometheus_text(const nlohmann::ordered_json& profile, int sites, int ranks);

}  // namespace latecomer::cli

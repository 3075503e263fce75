// SPDX-License-Identifier: BSD-3-Clause
// The figures of the HTML page, reduced to a size that a browser takes: sites, ranks, hosts, and per site the ranks in
// at most 1,000 columns. The script of the page reads them.
#pragma once

#include <vector>

#include "profiles/format/reader.hpp"
#include "profiles/render/shown_sites.hpp"

namespace latecomer::profiles {

/// As for html_report().
Json page_data(const Profile& profile, const ShownSites& shown);

/// Rounds to four significant digits, so that the number is short as text.
Json rounded(double value);

/// Numbers on a logarithmic scale, 16 bits each, as base64: 0 stands for no value, and c for 2^((c - 1) / 1280) - 1.
/// The relative error is below 0.03%.
std::string packed(const std::vector<double>& values);
/// The mark of a missing value for packed().
inline constexpr double kNoValue = -1;

}  // namespace latecomer::profiles

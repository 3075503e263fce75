// SPDX-License-Identifier: BSD-3-Clause
// The report as one self-contained HTML page. It opens with the verdict and needs no network. Its files are in
// profiles/cli/page; page_data.hpp assembles the figures.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "profiles/cli/profile_file.hpp"

namespace latecomer::cli {

/// `profile` has resolved names, and its sites are in display order. The rows of ranks of a site are in
/// cells[site["cells"]]. `file` names the profile in errors.
std::string html_report(const Json& profile, const std::vector<std::vector<RankCell>>& cells, const std::string& file);

}  // namespace latecomer::cli

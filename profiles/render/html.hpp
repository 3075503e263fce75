// SPDX-License-Identifier: BSD-3-Clause
// The report as one self-contained HTML page. It opens with the verdict and needs no network. Its files are in
// profiles/render/page; page_data.hpp assembles the figures.
#pragma once

#include <string>

#include "profiles/format/reader.hpp"

namespace latecomer::cli {

/// `profile` has resolved names and Keep::cells, and its sites are in display order. `file` names the profile in
/// errors.
std::string html_report(const Profile& profile, const std::string& file);

}  // namespace latecomer::cli

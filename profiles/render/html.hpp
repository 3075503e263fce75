// SPDX-License-Identifier: BSD-3-Clause
// The report as one self-contained HTML page. It opens with the verdict and needs no network. Its files are in
// profiles/render/page; page_data.hpp assembles the figures.
#pragma once

#include <string>

#include "profiles/format/reader.hpp"
#include "profiles/render/shown_sites.hpp"

namespace latecomer::profiles {

/// `profile` has names, cells and the record if there is one.
std::string html_report(const Profile& profile, const ShownSites& shown);

}  // namespace latecomer::profiles

// SPDX-License-Identifier: BSD-3-Clause
// What several sub-commands share: choosing algorithms by name, and writing numbers for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/algorithms/algorithm.hpp"

namespace latecomer::cli {

/// The collective of that name, or BadUsage with the nearest one.
core::Collective collective_named(const std::string& name);

/// The algorithm of that name, or all of the collective's for "all"; BadUsage with the nearest one.
std::vector<const core::Algorithm*> algorithms_named(core::Collective op, const std::string& name);

/// One figure, or file:PATH with any number of them; BadUsage says what is wrong with `option`.
std::vector<double> numbers(const std::string& option, const std::string& text);
/// `--sizes`: file:PATH, or a distribution of paper 003.
std::vector<double> sizes_named(const std::string& text);

/// Whether `--site GLOB` means a site of that id and place.
bool site_matches(const std::string& id, const std::string& place, const std::string& glob);

/// 1234567 ns as "1.235 ms".
std::string human_time(double ns);
/// 65536 as "64 KiB".
std::string human_bytes(double bytes);

}  // namespace latecomer::cli

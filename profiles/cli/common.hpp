// SPDX-License-Identifier: BSD-3-Clause
// Helpers of several sub-commands: they look up algorithms by name and read numbers.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/algorithms/algorithm.hpp"
#include "profiles/base/text.hpp"

namespace latecomer::profiles::cli {

/// The collective of that name. Throws BadUsage with the nearest name if it does not exist.
core::Collective collective_named(const std::string& name);

/// The algorithm of that name, or for "all" every algorithm of the collective. Throws BadUsage with the nearest name.
std::vector<const core::Algorithm*> algorithms_named(core::Collective op, const std::string& name);

/// One number, or the numbers of file:PATH. Throws BadUsage, which names `option` and the mistake.
std::vector<double> numbers(const std::string& option, const std::string& text);
/// The value of `--sizes`: file:PATH, or a distribution of Träff 2019.
std::vector<double> sizes_named(const std::string& text);

/// Whether `--site GLOB` matches a site's id or place.
bool site_matches(const std::string& id, const std::string& place, const std::string& glob);

/// Prints an answer of --json. Indentation as in json_text().
void print_answer(const nlohmann::ordered_json& answer, int indent = 2);

}  // namespace latecomer::profiles::cli

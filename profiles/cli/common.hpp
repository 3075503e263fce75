// SPDX-License-Identifier: BSD-3-Clause
// Helpers of several sub-commands: they look up algorithms by name, read numbers, and format numbers and words for
// people.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "core/algorithms/algorithm.hpp"

namespace latecomer::cli {

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

/// Formats 1234567 ns as "1.235 ms".
std::string human_time(double ns);
/// Formats 0.234 as "23%", with one more digit below 10%.
std::string percent(double share);
/// Formats 65536 as "64 KiB".
std::string human_bytes(double bytes);

/// Ascending numbers as "0-2, 5".
std::string ranks_text(const std::vector<int>& ranks);
/// "rank 5", "ranks 0-2, 5".
std::string ranks_named(const std::vector<int>& ranks);

/// A word as a shell takes it, in quotes if it needs them.
std::string shell_word(const std::string& word);

/// The same for a path, relative to the current folder if it lies in there.
std::string shown_path(const std::string& path);

/// Seconds, at least 0, as the kernel takes them.
timespec in_timespec(double seconds);

}  // namespace latecomer::cli

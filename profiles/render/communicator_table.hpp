// SPDX-License-Identifier: BSD-3-Clause
// Waiting by communicator.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "profiles/format/reader.hpp"

namespace latecomer::profiles {

/// The titles of the columns, in order, for the terminal and for the page.
inline constexpr std::string_view kCommunicatorTitles[] = {"ranks",      "calls",      "wait, sum", "share",
                                                           "wait, mean", "after last", "members"};

/// The groups of several ranks, longest wait first.
std::vector<analysis::Communicator> communicators_of(const Profile& profile);
std::string members_of(const analysis::Communicator& communicator);

/// Prints the `most` communicators in which ranks waited longest; nothing if the job has only one.
void print_communicators(const Profile& profile, int most);

}  // namespace latecomer::profiles

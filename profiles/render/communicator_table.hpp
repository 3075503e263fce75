// SPDX-License-Identifier: BSD-3-Clause
// Waiting by communicator.
#pragma once

#include <string>
#include <vector>

#include "profiles/format/reader.hpp"

namespace latecomer::cli {

/// A group of ranks that called collectives together. Times are nanoseconds.
struct Communicator {
  int ranks = 0;                                                ///< 0: all further groups of the profile
  std::string members;                                          ///< "0-3"
  double calls = 0, waited = 0, imbalance = 0, after_last = 0;  ///< the last two are means
  double share = 0;                                             ///< of the time of all ranks
};

/// The titles of the columns, in order, for the terminal and for the page.
inline constexpr std::string_view kCommunicatorTitles[] = {"ranks",      "calls",      "wait, sum", "share",
                                                           "wait, mean", "after last", "members"};

/// The groups of several ranks, longest wait first.
std::vector<Communicator> communicators_of(const Profile& profile);
std::string members_of(const Communicator& communicator);

/// Prints the `most` communicators in which ranks waited longest; nothing if the job has only one.
void print_communicators(const Profile& profile, int most);

}  // namespace latecomer::cli

// SPDX-License-Identifier: BSD-3-Clause
// The table of calls that are no collectives, by call site.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/render/shown_sites.hpp"

namespace latecomer::profiles {

inline constexpr std::array<std::string_view, 9> kTimedTitles = {"call",    "calls",     "bytes", "time, sum",  "share",
                                                                 "most on", "waits for", "kind",  "called from"};
/// A row: its shares are of the time of all ranks in these calls.
struct TimedRow {
  std::string call;
  double calls = 0, messages = 0, bytes = 0, time = 0;
  Share share;            ///< of the time of all ranks in the run
  std::string most_on;    ///< the rank with most of the time
  std::string waits_for;  ///< the rank that was awaited longest; "several": most waits were for several ranks at once
  std::string kind;       ///< the kind with most of the time of the messages that were matched, with their number
  std::string place;
};
std::vector<TimedRow> timed_rows(const Profile& profile, const std::vector<const analysis::TimedCalls*>& sites);

/// Prints the rows with at least `least` of the ranks' time, at most `most` of them. `wide`: lines of any length, with
/// the meaning of the columns.
void print_timed_sites(const Profile& profile, const std::vector<const analysis::TimedCalls*>& sites, std::size_t most,
                       double least, bool wide);
/// Prints what the threads that did not start MPI did in its calls, of the `most` ranks with most such time, and the
/// sites of these calls.
void print_threads(const Profile& profile, const std::vector<const analysis::TimedCalls*>& sites, std::size_t most);

}  // namespace latecomer::profiles

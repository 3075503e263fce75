// SPDX-License-Identifier: BSD-3-Clause
// The verdict: the late rank, the cause, and the remedy, in at most six sentences.
#pragma once

#include <string>
#include <vector>

#include "profiles/format/reader.hpp"

namespace latecomer::profiles {

/// The sentences of a profile with names resolved, for which Wanted::worst_only is enough, but for the set-up. A
/// statement that the data do not support is left out, or the sentence names the uncertainty.
std::vector<std::string> verdict(const Profile& profile);

/// The paragraph of `latecomer who` about ranks that stand still, or that stood still when the job ended. Empty: no
/// rank stands still, or the states of the ranks are not known.
std::vector<std::string> standstill(const analysis::LiveState& state);

/// The share of the time of all ranks that they waited in collectives.
Share wait_share(const Profile& profile);

/// The share of the time of all ranks that an algorithm may shorten: the time after the last arrival in calls of more
/// than 2 KiB.
Share shortened_share(const Profile& profile);

/// Where the snapshots of ranks end, in a job that runs still or was cut short: "3.600 s to 44.000 s".
std::string reach_text(const analysis::ProfileJob& job);

/// A smaller share is not worth a sentence. Derived: a report of the whole run cannot gain more.
inline constexpr double kLittle = 0.01;

}  // namespace latecomer::profiles

// SPDX-License-Identifier: BSD-3-Clause
// Reads the figures of a profile.
#pragma once

#include <string>

#include "profiles/analysis/profile.hpp"
#include "profiles/base/progress.hpp"
#include "profiles/format/recorded_calls.hpp"
#include "profiles/format/whole_profile.hpp"

namespace latecomer::profiles {

/// The data to read beside the figures.
struct Wanted {
  Progress::Patience patience{};
  bool names = false;     ///< resolves names that the profile lacks
  bool redacted = false;  ///< redact()
  bool offsets = false, cells = false;
  bool record = false, sample = false;  ///< `sample`: the record only if it is the small one of every run
  /// Reads rows of ranks only for the kWorstSites sites with the longest waits. Those of other sites make up almost all
  /// of a large profile, and only comparisons of the ranks of all sites need them.
  bool worst_only = false;
};
/// Reads the profile. Throws BadUsage on failure.
Profile load_profile(const std::string& path, const Wanted& wanted);
/// Derived: 64 bars of 16 pixels are as high as a screen of 1,024 lines. With no more rows than the kinds may keep
/// together, all are kept.
inline constexpr std::size_t kRowsKept = 64, kRowChoices = 3;

/// The record of a profile that was read with it. Throws BadUsage, with the remedy, if the profile has no record.
const RecordedArrivals& record_of(const Profile& profile, const std::string& file);

/// Reads the figures. Names and redactions, if they are wanted, are in `whole` too afterwards.
Profile read_profile(WholeProfile& whole, const Wanted& wanted);

}  // namespace latecomer::profiles

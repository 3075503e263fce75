// SPDX-License-Identifier: BSD-3-Clause
// Reads a profile of any size. At 10,000 ranks and 1,000 sites a profile takes about 1 GB, almost all of it rows of
// ranks. A report shows only a few of these rows.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/analysis/profile.hpp"
#include "profiles/base/progress.hpp"
#include "profiles/files/shared_folder.hpp"
#include "profiles/format/recorded_calls.hpp"

namespace latecomer::profiles {

using Json = nlohmann::ordered_json;

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

/// A profile whose rows of ranks stay in the file as text. Change `profile`, then write it with the rows.
class WholeProfile {
 public:
  explicit WholeProfile(const std::string& path);
  /// From a text in memory, which must outlive the object. `named` stands for the file in errors.
  WholeProfile(std::string named, std::string_view text);
  ~WholeProfile();
  const std::string name;  ///< of the file
  Json profile;            ///< each site's `ranks` is a placeholder
  std::size_t bytes() const { return text_.size(); }
  /// The rows of ranks of an element of `sites`.
  std::vector<analysis::RankRow> rows_of(const Json& site) const;
  /// Passes the profile on as text and replaces the placeholders by the rows.
  void write(const Sink& sink) const;

 private:
  void cut_rows();
  const std::string_view* rows_at(std::string_view placeholder) const;
  std::unique_ptr<class Mapped> file_;
  std::string_view text_;
  std::vector<std::string_view> rows_;
};

/// Reads the figures. Names and redactions, if they are wanted, are in `whole` too afterwards.
Profile read_profile(WholeProfile& whole, const Wanted& wanted);

}  // namespace latecomer::profiles

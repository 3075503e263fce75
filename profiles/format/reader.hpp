// SPDX-License-Identifier: BSD-3-Clause
// Reads a profile of any size and resolves names. At 10,000 ranks and 1,000 sites a profile takes about 1 GB, almost
// all of it rows of ranks. A report shows only a few of these rows.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiles/analysis/analysis.hpp"
#include "profiles/base/progress.hpp"
#include "profiles/record/files.hpp"

namespace latecomer::cli {

using Json = nlohmann::ordered_json;

/// The figures of one row of ranks, for the page's map of all rows.
struct RankCell {
  std::int64_t rank, ranks;                      ///< the first rank of the row, and the number of its ranks
  float offset_ns, waited_ns, awaited_ns, last;  ///< as in the profile: a mean, then three sums over the row's ranks
};

/// A call site. Its `ranks` are of three kinds: the kRowsKept rows that come last most often, those with the greatest
/// mean offset, and those that others waited for most.
struct Site : analysis::Calls {
  Json* json = nullptr;   ///< the site in Profile::json, without its rows of ranks
  std::size_t index = 0;  ///< its place in the file
  analysis::Baseline baseline;
  std::vector<double> offsets_ns, stddevs_ns;  ///< of all rows, if they were asked for
  std::vector<RankCell> cells;                 ///< of all rows, if they were asked for
  /// The number of calls outside idle epochs, which the mean imbalance covers.
  double unrested() const { return calls - json->value("rested", 0.0); }
  const Json& operator[](const char* key) const { return std::as_const(*json)[key]; }
};

/// A profile as the commands use it. It must not be copied: sites refer to `json`.
struct Profile {
  Profile() = default;
  Profile(Profile&&) = default;
  Profile& operator=(Profile&&) = default;
  Json json;
  std::vector<Site> sites;
  analysis::Analysis analysis;  ///< over all rows of all sites
};

/// What to keep of all rows of ranks, beside the figures of Analysis.
enum class Keep { figures, offsets, cells };
/// Reads the profile. Throws BadUsage on failure.
Profile load_profile(const std::string& path, Progress::Patience patience, Keep keep = Keep::figures);
/// The same from a text in memory. `name` stands for the file in errors.
Profile read_profile(const std::string& name, std::string_view text);
/// Derived: 64 bars of 16 pixels are as high as a screen of 1,024 lines. With no more rows than the kinds may keep
/// together, all are kept.
inline constexpr std::size_t kRowsKept = 64, kRowChoices = 3;

/// profiles::redact() for the profile and its analysis.
void redact(Profile& profile);

/// The figures of the object `before` of a site, a row or a caller.
analysis::Intervals intervals_of(const Json& before);
/// One row of `ranks` or `awaited`.
analysis::RankRow row_of(const Json& row);

/// A profile whose rows of ranks stay in the file as text. Change `profile`, then write it with the rows.
class WholeProfile {
 public:
  explicit WholeProfile(const std::string& path);
  /// From a text in memory, which must outlive the object. `name` stands for the file in errors.
  WholeProfile(const std::string& name, std::string_view text);
  ~WholeProfile();
  Json profile;  ///< each site's `ranks` is a placeholder
  /// Passes the profile on as text and replaces the placeholders by the rows.
  void write(const profiles::Sink& sink) const;

 private:
  void cut(const std::string& name, const char* at, const char* end);
  std::unique_ptr<class Mapped> file_;
  std::vector<std::string_view> rows_;
};

/// The bounds that the buckets of a profile's histogram set to a quantile. (Its p50 and p90 are interpolated in these.)
std::pair<double, double> quantile_bounds(const Json& histogram, double quantile);

/// Time of all ranks, nanoseconds.
inline double rank_time(const Json& profile) {
  return profile["job"]["wall_time_s"].get<double>() * 1e9 * profile["job"]["ranks"].get<double>();
}

}  // namespace latecomer::cli

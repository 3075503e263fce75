// SPDX-License-Identifier: BSD-3-Clause
// Reads a profile of any size and resolves names. At 10,000 ranks and 1,000 sites a profile takes about 1 GB, almost
// all of it rows of ranks. A report shows only a few of these rows.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/cli/progress.hpp"
#include "profiles/files.hpp"

namespace latecomer::cli {

using Json = nlohmann::ordered_json;

/// Reads the profile. Throws BadUsage on failure. Keeps three kinds of rows per site: the kRowsKept rows that come last
/// most often, those with the greatest mean offset, and those that others waited for most. They are in rank order and
/// have no histograms. `rows` is the number of all rows, and `last_total` the sum of their last_count. The profile gets
/// `rank_sums` (rank_rows.hpp) over all sites and rows. With `every_rank`, `mean_offsets_ns` and `stddevs_ns` hold the
/// values of all rows. With `cells`, all rows of site i are in (*cells)[i].
struct RankCell {
  std::int64_t rank, ranks;                      ///< the first rank of the row, and the number of its ranks
  float offset_ns, waited_ns, awaited_ns, last;  ///< as in the profile: a mean, then three sums over the row's ranks
};
Json load_profile(const std::string& path, Progress::Patience patience, bool every_rank = false,
                  std::vector<std::vector<RankCell>>* cells = nullptr);
/// Derived: 64 bars of 16 pixels are as high as a screen of 1,024 lines. With no more rows than the kinds may keep
/// together, all are kept.
inline constexpr std::size_t kRowsKept = 64, kRowChoices = 3;

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

/// Sets function, file and line of every frame, `near` where only the symbol before it is known, and `inlined_into`,
/// the functions around an inlined one. Adds a warning for each module whose lines are unknown, with the remedy.
void resolve_names(Json& profile, Progress::Patience patience);

/// The name of a C++ function without its arguments, template arguments and result: "fe::dot" for
/// "double fe::dot<double>(fe::Vector<double> const&)". The outer scopes of a long name become "...". A procedure of a
/// Fortran module is "module::procedure".
std::string short_name(std::string name);

/// "function (file:line)", or module and offset if the name is unknown. For an inlined function " in " and the function
/// around it follow.
std::string place(const Json& frame);

/// The number of calls that the site's mean imbalance covers: all calls outside idle epochs.
inline double unrested(const Json& site) { return site["calls"].get<double>() - site.value("rested", 0.0); }

/// Time of all ranks, nanoseconds.
inline double rank_time(const Json& profile) {
  return profile["job"]["wall_time_s"].get<double>() * 1e9 * profile["job"]["ranks"].get<double>();
}

/// Time that the site's ranks waited, nanoseconds. Older profiles hold the time from first to last arrival only.
inline double total_wait(const Json& site) {
  return site.contains("waited_ns") ? site["waited_ns"].get<double>()
                                    : site["imbalance_ns"]["mean"].get<double>() * unrested(site);
}

/// "7", or "12-14" for a row of several ranks.
std::string row_name(const Json& row);

}  // namespace latecomer::cli

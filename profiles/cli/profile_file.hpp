// SPDX-License-Identifier: BSD-3-Clause
// Reading a profile for people: of any size, with names resolved. At 10,000 ranks and 1,000 sites the file has
// a gigabyte, nearly all of it rows of ranks, of which a report shows a few.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/cli/progress.hpp"

namespace latecomer::cli {

using Json = nlohmann::ordered_json;

/// The profile, or BadUsage. Of each site's rows of ranks only those stay that come last most often or are
/// latest on average (kRowsKept of each), in the order of ranks and without histograms; `rows` says how many
/// there were and `last_total` what their last_count add up to.
/// `every_rank`: beside them `mean_offsets_ns` and `stddevs_ns` of all rows.
Json load_profile(const std::string& path, Progress::Patience patience, bool every_rank = false);
inline constexpr std::size_t kRowsKept = 64;

/// A profile whose rows of ranks stay text, in the file: to be changed elsewhere and written out again.
class WholeProfile {
 public:
  explicit WholeProfile(const std::string& path);
  ~WholeProfile();
  Json profile;        ///< each site's `ranks` is a mark
  void print() const;  ///< to stdout, with the rows where the marks are
 private:
  std::unique_ptr<class Mapped> file_;
  std::vector<std::string_view> rows_;
};

/// Fills in function, file and line of every frame.
void resolve_names(Json& profile, Progress::Patience patience);

/// "function (file:line)", or the module and offset where there is no name.
std::string place(const Json& frame);

/// Calls that the site's means of arrivals stand for: all but those that were not looked at because they were balanced.
inline double unrested(const Json& site) { return site["calls"].get<double>() - site.value("rested", 0.0); }

/// "7", or "12-14" for a row that ranks share.
std::string row_name(const Json& row);

}  // namespace latecomer::cli

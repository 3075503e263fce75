// SPDX-License-Identifier: BSD-3-Clause
// A profile of any size, whose rows of ranks stay text. At 10,000 ranks and 1,000 sites a profile takes about 1 GB,
// almost all of it rows of ranks. A report shows only a few of these rows.
#pragma once

#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/base/progress.hpp"
#include "profiles/files/shared_folder.hpp"

namespace latecomer::profiles {

using Json = nlohmann::ordered_json;

/// Writes a profile in its two sections. `rows`: a list as JSON for each element of `sites`.
void write_sections(const Json& head, std::span<const std::string_view> rows, const Sink& sink);

/// Change `profile`, then write it with the rows.
class WholeProfile {
 public:
  /// Both throw BadUsage if the text is not a profile. One of version 1 is converted.
  explicit WholeProfile(const std::string& path, const Progress::Patience& patience = {});
  /// From a text in memory, which must outlive the object. `named` stands for the file in errors.
  WholeProfile(std::string named, std::string_view text);
  ~WholeProfile();
  const std::string name;  ///< of the file
  Json profile;            ///< the head, and an empty `rank_rows`
  std::size_t bytes() const { return text_.size(); }
  /// The rows of ranks of each element of `sites`, lists as JSON.
  const std::vector<std::string_view>& rows() const { return rows_; }
  /// Keeps these elements of `sites` with their rows, in this order. `sites`: indices.
  void choose_sites(const std::vector<std::size_t>& sites);
  void write(const Sink& sink) const { write_sections(profile, rows_, sink); }
  /// Writes it as version 1 has it: each site holds its rows.
  void write_version_1(const Sink& sink) const;
  /// Throws BadUsage: with the place where the text is nested too deep, or with `why`.
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  [[noreturn]] void refuse_shape(const std::string& why) const;
  void read(const Progress::Patience& patience);
  bool take_sections();
  void take_apart(const Progress::Patience& patience);
  void find_rows(bool in_sites, const Json& lists);
  void convert();
  std::unique_ptr<class Mapped> file_;
  std::string_view text_;
  std::vector<std::string_view> rows_;
  std::deque<std::string> own_;  ///< rows whose text is not in `text_`
};

}  // namespace latecomer::profiles

// SPDX-License-Identifier: BSD-3-Clause
// The form of a profile's text. The first line tells whose profile it is. The last key, `rank_rows`, has a list of rows
// for each site. Each list begins a line, and no other line of that section begins with a bracket. So a reader takes
// the other keys, the head, without a look at the rows, which are almost all of a large profile.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latecomer::profiles {

inline constexpr int kProfileVersion = 2;

/// `job_key`: hexadecimal digits, or another text as it stands in JSON.
inline std::string first_line(std::string_view job_key) {
  return "{\"format\": \"latecomer-profile\", \"version\": " + std::to_string(kProfileVersion) + ", \"job_key\": \"" +
         std::string(job_key) + "\",\n";
}
inline constexpr std::string_view kRowsBegin = "\n\"rank_rows\": [", kRowsEnd = "\n]}\n";

struct Sections {
  std::string head;                    ///< an object without `rank_rows`
  std::vector<std::string_view> rows;  ///< a list for each site, parts of the text
};

/// Empty: the text is no profile, or of version 1, or another program has formatted it. Looks only at the begin and the
/// end of each list.
inline std::optional<Sections> sections_of(std::string_view text) {
  const std::size_t at = text.find(kRowsBegin);
  if (at == std::string_view::npos || at == 0 || text[at - 1] != ',' || !text.ends_with(kRowsEnd)) return {};
  Sections out{.head = std::string(text.substr(0, at - 1)) + "}", .rows = {}};
  text = text.substr(at + kRowsBegin.size());
  text.remove_suffix(kRowsEnd.size());
  constexpr std::string_view kList = "\n[";
  for (bool last = text.empty(); !last;) {
    if (!text.starts_with(kList)) return {};
    const std::size_t next = text.find(kList, 1);
    last = next == std::string_view::npos;
    const std::string_view one = text.substr(1, last ? next : next - 1);
    if (!one.ends_with(last ? "]" : "],")) return {};
    out.rows.push_back(one.substr(0, one.rfind(']') + 1));
    if (!last) text.remove_prefix(next);
  }
  return out;
}

}  // namespace latecomer::profiles

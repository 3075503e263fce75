// SPDX-License-Identifier: BSD-3-Clause
// Writes findings as text and JSON. Each kind has one template.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "profiles/analysis/findings.hpp"

namespace latecomer::profiles {

/// A finding as a person reads it.
struct FindingText {
  std::string title;
  std::string saves;  ///< "could save 2.3 to 2.4 s (53 to 56%)", or how long it is
  std::vector<std::string> where, why;
  std::string next;  ///< a command with "FILE" for the profile
  std::string heading() const { return saves.empty() ? title : title + ": " + saves; }
};

/// What a report says about a run.
struct Judgement {
  std::string headline;                     ///< what the ranks' time was spent on; "": the profile does not know it
  std::vector<analysis::Finding> findings;  ///< worst first
  std::vector<FindingText> texts;           ///< by finding
  std::string not_known;                    ///< "": nothing is missing
};
/// Of a profile with names resolved. Wanted::worst_only is enough.
Judgement judge(const Profile& profile);

/// Findings on the first screen.
inline constexpr std::size_t kFirstFindings = 3;
/// The headline and the findings in lines of at most `width` characters. `file`: the profile, as a shell takes it.
std::string judgement_text(const Judgement& judgement, std::size_t most, std::size_t width, const std::string& file);
/// The headline, and the numbered titles of the findings of the first screen; of ranks that stand still, all is said.
std::vector<std::string> titles(const Judgement& judgement);
/// The whole as one text per headline, finding and note.
std::vector<std::string> verdict(const Judgement& judgement);
nlohmann::ordered_json findings_json(const Judgement& judgement);

/// Ranks that stand still, or that stood still when the job ended: the kind of the finding, a title without its full
/// stop, and a paragraph. Empty: no rank stands still, or the states of the ranks are not known.
std::optional<analysis::Finding> standstill(const analysis::LiveState& state);

/// The part of the job that the figures cover: "until 3.6 s of the run, without rank 3". "": the whole job.
std::string partial_text(const Profile& profile);

/// Where the snapshots of ranks end, in a job that runs still or was cut short: "3.600 s to 44.000 s".
std::string reach_text(const analysis::ProfileJob& job);

}  // namespace latecomer::profiles

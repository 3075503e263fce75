// SPDX-License-Identifier: BSD-3-Clause
// The profile's key `last_state`: where the ranks of a job were when they were seen last. Owns its form in JSON. The
// judgement is in render/hang.
#pragma once

#include <nlohmann/json.hpp>

#include "profiles/analysis/live_rank.hpp"

namespace latecomer::profiles {

/// "running", "asleep", "stopped", "gone", or "?" of a letter of /proc.
std::string_view process_state_name(char letter);

/// The value of the key.
nlohmann::ordered_json last_state_json(const analysis::LiveState& state);
/// Reads it. The profile has the shape of the schema. No ranks: the profile lacks the key.
analysis::LiveState last_state_of(const nlohmann::ordered_json& profile);

}  // namespace latecomer::profiles

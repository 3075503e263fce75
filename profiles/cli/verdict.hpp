// SPDX-License-Identifier: BSD-3-Clause
// The verdict: who is late, why, and what would help, in at most five sentences.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace latecomer::cli {

/// The sentences of a profile that load_profile() has read, with names resolved. A statement that the data do not
/// support is left out, or the sentence says what is uncertain.
std::vector<std::string> verdict(const nlohmann::ordered_json& profile);

/// One object per rank that the profile's sites name. It has the rank's host, its calls as the last one, and its mean
/// lateness after the others' mean arrival. It also has the time that it waited, and that others waited for it.
/// `causes` holds shares of its lateness that add up to 1. `unexplained` is what its intervals do not show. null: it
/// was not late, or nothing was sampled. `blamed_ns` is the time that others waited because of the rank, with waits for
/// messages followed to the ranks that caused them, and `blamed_causes` the shares of that.
nlohmann::ordered_json ranks_json(const nlohmann::ordered_json& profile);
/// The share of rank-time that ranks waited in collectives, 0 to 1.
double wait_share(const nlohmann::ordered_json& profile);

}  // namespace latecomer::cli

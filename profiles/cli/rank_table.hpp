// SPDX-License-Identifier: BSD-3-Clause
// The time of ranks and hosts in its parts, and how long others waited for them.
#pragma once

#include <nlohmann/json.hpp>

namespace latecomer::cli {

/// Prints the `most` ranks that others waited for most, the hosts if there are several, and POP's efficiencies. Prints
/// nothing for a profile that lacks `processes`.
void print_ranks(const nlohmann::ordered_json& profile, int most);

/// One object per host: `host`, `ranks`, `waited_ns`, `awaited_ns`, the parts of the ranks' time, summed, and
/// `efficiency` (efficiency.hpp).
nlohmann::ordered_json hosts_json(const nlohmann::ordered_json& profile);

}  // namespace latecomer::cli

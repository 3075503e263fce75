// SPDX-License-Identifier: BSD-3-Clause
// The time of ranks and hosts in its parts, and how long others waited for them, as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "profiles/analysis/analysis.hpp"

namespace latecomer::profiles {

/// Prints the `most` ranks that others waited for most, the hosts if there are several, and POP's efficiencies. Prints
/// nothing for a profile that lacks `processes`.
void print_ranks(const analysis::Analysis& analysis, int most);

/// One object per rank, or per row of neighbouring ranks with their number `ranks`. It has the rank's host, its calls
/// as the last one, and its mean lateness after the others' mean arrival (null: no call is known). It also has the time
/// that it waited, and that others waited for it. `causes` holds shares of its lateness that add up to 1. `unexplained`
/// is the share that its intervals do not show. null: it was not late, or no interval was sampled. `blamed_ns` is the
/// time that others waited because of the rank, with waits for messages followed to the ranks that caused them, and
/// `blamed_causes` the shares of that.
nlohmann::ordered_json ranks_json(const analysis::Analysis& analysis);

/// One object per host: `host`, `ranks`, `waited_ns`, `awaited_ns`, the parts of the ranks' time, summed, and
/// `efficiency`.
nlohmann::ordered_json hosts_json(const analysis::Analysis& analysis);

/// The keys `load_balance`, `communication`, `serialisation` and `transfer`.
nlohmann::ordered_json efficiency_json(const analysis::Efficiency& efficiency);

}  // namespace latecomer::profiles

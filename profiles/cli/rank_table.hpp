// SPDX-License-Identifier: BSD-3-Clause
// The time of ranks and hosts in its parts, and how long others waited for them.
#pragma once

#include <nlohmann/json.hpp>

namespace latecomer::cli {

/// Prints the `most` ranks that others waited for most, the hosts if there are several, and two efficiencies. Prints
/// nothing for a profile that lacks `processes`.
void print_ranks(const nlohmann::ordered_json& profile, int most);

/// One object per host: `host`, `ranks`, `waited_ns`, `awaited_ns` and the parts of the ranks' time, summed.
nlohmann::ordered_json hosts_json(const nlohmann::ordered_json& profile);

/// Two efficiencies of POP, from the time of the processes outside MPI. Both are 0 if it is unknown.
struct Efficiencies {
  double load_balance = 0;   ///< mean over longest time outside MPI
  double communication = 0;  ///< longest time outside MPI over run time
};
Efficiencies efficiencies(const nlohmann::ordered_json& profile);

}  // namespace latecomer::cli

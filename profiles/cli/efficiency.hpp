// SPDX-License-Identifier: BSD-3-Clause
// The efficiencies of the POP centre of excellence, estimated from the sums of a profile.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace latecomer::cli {

/// All from 0 to 1. communication = serialisation x transfer.
struct Efficiency {
  double load_balance = 0;   ///< mean over longest time outside MPI
  double communication = 0;  ///< longest time outside MPI over run time
  double serialisation = 0;  ///< longest time outside MPI over run time without transfers
  double transfer = 0;       ///< run time without transfers over run time
};

/// Of the ranks of a host, or of all ranks with "". All 0: the profile lacks `processes`, or these ranks did nothing
/// outside MPI.
class Efficiencies {
 public:
  explicit Efficiencies(const nlohmann::ordered_json& profile);
  Efficiency of_host(const std::string& host) const;

 private:
  struct RankTime {
    std::string host;
    double wall = 0, own = 0, messages = 0, transfers = 0;
  };
  std::map<long, RankTime> ranks_;
};

/// The keys `load_balance`, `communication`, `serialisation` and `transfer`.
nlohmann::ordered_json efficiency_json(const Efficiency& efficiency);

/// The definitions, one per line.
inline constexpr const char* kEfficiencyText =
    "  load balance    mean over longest time outside MPI\n"
    "  communication   longest time outside MPI over run time: serialisation x transfer\n"
    "  serialisation   longest time outside MPI over run time without transfers (estimate)\n"
    "  transfer        run time without transfers over run time (estimate). Transfers: what follows the last arrival\n"
    "                  of a collective, and time in other MPI calls that no late rank explains\n";

}  // namespace latecomer::cli

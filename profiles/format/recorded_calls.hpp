// SPDX-License-Identifier: BSD-3-Clause
// The record of arrivals in a profile: each recorded call with the waits of its ranks, for the formats of other tools.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiles/format/reader.hpp"
#include "profiles/record/record.hpp"

namespace latecomer::cli {

/// One recorded collective. Times are nanoseconds since the earliest recorded arrival. The vectors go by the position
/// in the communicator.
struct RecordedCall {
  const Json* site = nullptr;
  core::Collective op = core::Collective::barrier;
  std::size_t group = 0;  ///< index in RecordedArrivals::groups
  std::string algorithm;
  core::Bytes bytes = -1;  ///< -1: unknown
  core::Rank root = -1;
  bool blocking = true;
  std::vector<core::Nanoseconds> arrivals, exits;  ///< an exit of -1 is unknown
  std::vector<std::int32_t> awaited;               ///< the position that it waited for; -1: it did not wait
  std::vector<core::Nanoseconds> wait_ends;
  core::Nanoseconds last = 0;  ///< the last arrival
};

/// One rank in one call.
struct Visit {
  std::uint32_t call, position;
  bool nested;  ///< it overlaps no earlier visit of the rank, so slices of one track can show it
};

struct RecordedArrivals {
  std::vector<std::vector<core::Rank>> groups;  ///< ranks of MPI_COMM_WORLD in the order of the communicator
  std::vector<RecordedCall> calls;              ///< by ascending first arrival
  std::vector<std::vector<Visit>> ranks;        ///< [ranks of the job], by ascending arrival
  std::uint64_t left_out = 0;  ///< events of folded sites, or of groups whose members the profile does not name
};

/// Reads the record. `file` names the profile in errors. Throws BadUsage if the profile holds no record or a damaged
/// one. The result refers to the sites of `profile`.
RecordedArrivals recorded_arrivals(const Json& profile, const std::string& file);

/// The name of each rank's host; "" for a rank that sent no data.
std::vector<std::string> hosts_of_ranks(const Json& profile);

}  // namespace latecomer::cli
